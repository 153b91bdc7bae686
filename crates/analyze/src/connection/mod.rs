//! Analyses one connection in one capture.
//!
//! The capture may have been made at either end or on the path. It may begin in the middle of the
//! connection, lack a direction, or contain packets twice. Memory is bounded by the data in flight, not by
//! the length of the connection.
//!
//! `Connection` passes each packet to the modules that need it:
//!
//! | Question | Module |
//! |---|---|
//! | Did the handshake succeed, and which options are in use? | `handshake`, `icmp` |
//! | Where was the capture made? | `capture_point` |
//! | Which packets were captured twice? | `copies` |
//! | Do both directions have the same clock? | `clock_order` |
//! | Is a long silence a pause, or a step of the clock? | `clock_step` |
//! | How long do both ends wait before they answer? | `turns` |
//! | What is the server called? | `server_name` |
//! | Are segments too long for the path? | `path_mtu` |
//! | What happened to the data of one end: limits, RTT, losses, retransmissions? | `direction` |
//!
//! `direction` analyses the data that one end sends, and the ACKs of the other end. Its documentation lists
//! its modules. [`findings`] contains the results, `verdict` judges why the connection was slow, and `text`
//! formats both.

mod capture_point;
mod clock_order;
mod clock_step;
mod congestion;
mod copies;
mod direction;
pub mod findings;
mod handshake;
mod icmp;
mod path_mtu;
mod server_name;
#[cfg(test)]
mod tests;
mod text;
mod turns;
mod verdict;

use aircaptures::icmp::{IcmpError, IcmpKind};
use aircaptures::packet::{Packet, Timestamp};
use airwire::segment::Flags;
use airwire::seq::Seq;
pub(crate) use clock_step::{ClockVote, LONG_STEP, MIN_STEP};
pub use findings::ConnectionFindings;

use self::capture_point::ReplyDelay;
use self::clock_order::EarlyEchoes;
use self::copies::{Copies, RecentPackets};
use self::direction::{CaptureView, DirectionAnalysis, PacketContext};
use self::findings::{Close, DirectionFindings, Verdict};
use self::handshake::HandshakeTracker;
use self::icmp::IcmpErrors;
use self::path_mtu::PathMtu;
use self::server_name::ServerName;
use self::turns::Turns;
use super::endpoints::Endpoints;
use super::trace::Trace;
use crate::compact::OnDemand;

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

#[derive(Clone, Debug)]
pub(crate) struct Connection {
    ends: Endpoints,
    first_packet: u64,
    begin: Timestamp,
    /// Nanoseconds since `begin`. It never decreases.
    now: i64,
    packets: u32,
    recent: [RecentPackets; 2],
    reply_delays: [ReplyDelay; 2],
    directions: [DirectionAnalysis; 2],
    handshake: HandshakeTracker,
    rare: OnDemand<Rare>,
    server_name: ServerName,
    turns: Turns,
    path_mtu: [PathMtu; 2],
    ending: Ending,
}

/// [`Close`] in two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Open,
    Closed,
    Reset { by: u8 },
}

impl From<Ending> for Close {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Open => Self::Open,
            Ending::Closed => Self::Closed,
            Ending::Reset { by } => Self::Reset { by: by.into() },
        }
    }
}

/// State that few connections need.
#[derive(Clone, Debug, Default)]
struct Rare {
    copied: u32,
    clock_went_back: u32,
    /// The sum of all backward steps of the clock, in nanoseconds.
    clock_set_back: i64,
    icmp: IcmpErrors,
    /// Empty until the first copy.
    copies: Option<Copies>,
    early_echoes: EarlyEchoes,
    /// Whether the directions are known to have different clocks.
    clocks_differ: bool,
    /// The time from which the connection is judged, if it is not judged as a whole ([`Connection::continued`]).
    judged_from: i64,
    /// The ISN of the second SYN of each end that differs from its first SYN.
    other_isn: [Option<Seq>; 2],
}

impl Rare {
    /// Returns the state with the counts from now on.
    fn continued(&self) -> Self {
        Self { copied: 0, clock_went_back: 0, ..self.clone() }
    }

    fn heap(&self) -> usize {
        self.icmp.heap() + self.copies.as_ref().map_or(0, Copies::heap)
    }
}

/// Flags that the first packet of a connection does not have.
const NOT_IN_FIRST_SYN: Flags = Flags::RST.with(Flags::ACK);
/// Largest time in a connection: nine years in nanoseconds. Later timestamps are clamped, so that sums of
/// times do not overflow.
const MAX_TIME: i64 = 1 << 58;

/// A backward step of more than this many nanoseconds means that the clock was set back. Smaller steps are
/// reordered packets.
const CLOCK_SET_BACK: i64 = 1_000_000_000;

impl Connection {
    /// Creates a connection from its first packet. The caller must also pass this packet to `process`.
    pub(crate) fn new(first: &Packet, keep: Keep) -> Self {
        let syn_ack = first.flags.contains(Flags::SYN.with(Flags::ACK));
        let ends = if syn_ack { [first.dst, first.src] } else { [first.src, first.dst] };
        let direction = |from: usize| {
            let trace = || Trace {
                name: format!("{} → {}", ends[from], ends[1 - from]),
                origin: first.at.0,
                ..Trace::default()
            };
            DirectionAnalysis::new((keep == Keep::Trace).then(trace))
        };
        Self {
            ends: Endpoints::new(ends[0], ends[1]),
            first_packet: first.number,
            begin: first.at,
            now: 0,
            packets: 0,
            recent: Default::default(),
            reply_delays: Default::default(),
            directions: [direction(0), direction(1)],
            handshake: HandshakeTracker::default(),
            rare: OnDemand::default(),
            server_name: ServerName::default(),
            turns: Turns::default(),
            path_mtu: Default::default(),
            ending: Ending::Open,
        }
    }

    /// Returns this connection as if the capture had begun at `from`, in nanoseconds since its begin. The state of
    /// the protocol and the minimum delays of the path are known from before.
    pub(crate) fn continued(&self, from: i64) -> Self {
        let mut rare = self.rare.map(Rare::continued);
        rare.get_or_default().judged_from = from;
        Self {
            ends: self.ends.clone(),
            first_packet: self.first_packet,
            begin: self.begin,
            now: self.now.max(from),
            packets: 0,
            recent: self.recent.clone(),
            reply_delays: self.reply_delays.clone(),
            directions: self.directions.each_ref().map(|direction| direction.continued(from)),
            handshake: self.handshake.continued(),
            rare,
            server_name: ServerName::default(),
            turns: self.turns.continued(from),
            path_mtu: self.path_mtu.clone(),
            ending: self.ending,
        }
    }

    /// Processes a packet. Packets are passed in the order of the capture.
    pub(crate) fn process(&mut self, packet: &Packet) {
        let silence = self.advance_clock(packet.at);
        self.packets += 1;
        let from = self.from(packet);
        if self.is_of_earlier_connection(packet, from) {
            return;
        }
        let context = self.context(from, silence);
        if self.is_copy(&context, packet, from) {
            let rare = self.rare.get_or_default();
            rare.copied = rare.copied.saturating_add(1);
            return;
        }
        if packet.flags.contains(Flags::SYN) && !self.accepts_syn(packet, from) {
            return;
        }
        self.process_handshake(packet, from);
        self.check_order(packet, from);
        self.update_reply_delays(packet, from);

        let context = self.context(from, silence);
        let sent_before = self.directions[from].sent_end();
        self.directions[from].process_data_packet(&context, packet);
        if packet.len > 0 {
            self.process_data(packet, from, sent_before);
        }
        if let Some(ack) = packet.ack {
            self.select_isn(packet, from);
            let context = self.context(1 - from, silence);
            self.directions[1 - from].process_ack(&context, packet, ack);
            self.path_mtu[1 - from].acked(self.directions[1 - from].una());
        }
        self.update_close(packet, from);
    }

    fn is_copy(&mut self, context: &PacketContext, packet: &Packet, from: usize) -> bool {
        let copies = self.rare.get_mut().and_then(|rare| rare.copies.as_mut());
        let delay = self.recent[from].copy_delay(self.now, packet, from, copies, context.round_trip);
        if let Some(delay) = delay {
            self.rare.get_or_default().copies.get_or_insert_default().add(delay);
        }
        delay.is_some() || packet.len > 0 && self.directions[from].is_captured_again(context, packet)
    }

    /// Returns whether a SYN belongs to the connection as the capture shows it. A server may answer a
    /// retransmitted SYN with another ISN, for example if it uses SYN cookies or has lost its state.
    fn accepts_syn(&mut self, packet: &Packet, from: usize) -> bool {
        if self.directions[from].may_begin_with(packet.seq) {
            return true;
        }
        if let Some(isn) = self.directions[from].unacknowledged_isn() {
            self.directions[from].begin_again();
            self.rare.get_or_default().other_isn[from] = Some(isn);
            return true;
        }
        // The capture has missed the SYN of another connection between the same ports. Wireshark counts it as the
        // same stream.
        let is_new = !self.directions[1 - from].contains(packet.ack);
        if is_new {
            self.directions.iter_mut().for_each(DirectionAnalysis::begin_again);
            self.ending = Ending::Open;
        }
        is_new
    }

    /// If end `from` acknowledges the first of two different SYNs of the other end, returns to the first.
    fn select_isn(&mut self, packet: &Packet, from: usize) {
        let Some(rare) = self.rare.get_mut() else { return };
        let Some(isn) = rare.other_isn[1 - from] else { return };
        let other = &mut self.directions[1 - from];
        if other.unacknowledged_isn().is_some() && packet.ack == Some(isn.at(1)) {
            other.begin_again();
            rare.other_isn[1 - from] = None;
        }
    }

    /// Looks for evidence that the two directions were recorded with different clocks. Must be called before
    /// `update_reply_delays`.
    fn check_order(&mut self, packet: &Packet, from: usize) {
        let Some(timestamps) = packet.options.timestamps else { return };
        let newest = self.reply_delays[from].timestamps().map(|[_, newest]| newest);
        if packet.ack.is_some()
            && newest.is_some_and(|newest| (timestamps.ecr.wrapping_sub(newest) as i32) > 0)
        {
            self.rare.get_or_default().early_echoes.echo(from, timestamps.ecr, self.now);
        }
        if let Some(rare) = self.rare.get_mut() {
            rare.early_echoes.original(packet, from, self.now);
        }
    }

    /// Returns whether the directions have different clocks, when this is noticed for the first time.
    pub(crate) fn notices_clocks(&mut self) -> bool {
        self.clock_difference().is_some()
            && !std::mem::replace(&mut self.rare.get_or_default().clocks_differ, true)
    }

    /// Returns the smallest possible difference between the clocks of the two directions in nanoseconds, or
    /// `None` without evidence of a difference.
    fn clock_difference(&self) -> Option<i64> {
        let echoes = self.rare.get().and_then(|rare| rare.early_echoes.found.clock_difference());
        let acks = self.directions.iter().filter_map(DirectionAnalysis::clock_difference);
        acks.chain(echoes).max()
    }

    /// Sets `now` to the time of a packet. Returns the time since the last packet.
    fn advance_clock(&mut self, at: Timestamp) -> i64 {
        let at = self.time_of(at);
        if at < self.now {
            let rare = self.rare.get_or_default();
            rare.clock_went_back = rare.clock_went_back.saturating_add(1);
            let step = self.now - at;
            if step > CLOCK_SET_BACK {
                rare.clock_set_back = rare.clock_set_back.saturating_add(step);
            }
        }
        let silence = (at - self.now).max(0);
        self.now += silence;
        silence
    }

    /// Returns whether [`process_payload`](Self::process_payload) needs the payload of this packet.
    pub(super) fn wants_payload(&self, packet: &Packet) -> bool {
        self.server_name.wants(self.from(packet))
    }

    /// Processes the captured payload of the packet that was passed to [`process`](Self::process) last.
    pub(super) fn process_payload(&mut self, packet: &Packet, payload: &[u8]) {
        let from = self.from(packet);
        let Some(offset) = self.directions[from].offset(packet.seq) else { return };
        let start = offset + u64::from(packet.flags.contains(Flags::SYN));
        self.server_name.add(from, start, payload, packet.len as usize);
    }

    /// Processes an ICMP error about one of the connection's packets, in frame `number`.
    pub(super) fn process_icmp(&mut self, error: &IcmpError, number: u64, at: Timestamp) {
        let caused_by = usize::from(error.about[0] != self.ends.first());
        self.rare.get_or_default().icmp.add(error, number, at, self.begin, caused_by);
        if error.kind == IcmpKind::PacketTooBig {
            self.path_mtu[caused_by].too_big(error.mtu);
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
        self.ending != Ending::Open
    }

    /// Returns whether the packet is a SYN that starts another connection. As in Wireshark, a SYN-ACK never
    /// does.
    pub(crate) fn starts_new_connection(&self, packet: &Packet) -> bool {
        let is_syn = packet.flags.contains(Flags::SYN) && !packet.flags.intersects(NOT_IN_FIRST_SYN);
        is_syn && !self.directions[self.from(packet)].may_begin_with(packet.seq)
    }

    /// Returns the memory in bytes, without the traces.
    pub(super) fn memory(&self) -> usize {
        let directions: usize = self.directions.iter().map(DirectionAnalysis::heap).sum();
        let path_mtu: usize = self.path_mtu.iter().map(PathMtu::heap).sum();
        let icmp = self.rare.get().map_or(0, |rare| size_of::<Rare>() + rare.heap());
        size_of::<Self>() + self.ends.heap() + directions + path_mtu + icmp + self.server_name.heap()
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets.into()
    }

    /// Returns the data of each end in bytes: acknowledged data if there are ACKs, otherwise sent data.
    pub(crate) fn transferred(&self) -> [u64; 2] {
        self.directions.each_ref().map(DirectionAnalysis::transferred)
    }

    /// Returns whether data of either end is outstanding.
    pub(crate) fn has_outstanding(&self) -> bool {
        self.directions.iter().any(DirectionAnalysis::has_outstanding)
    }

    /// Returns the time of the last packet in nanoseconds since the first one.
    pub(crate) fn now(&self) -> i64 {
        self.now
    }

    /// Returns the time of this packet in nanoseconds since the connection's first one.
    pub(crate) fn time_of(&self, at: Timestamp) -> i64 {
        let set_back = self.rare.get().map_or(0, |rare| rare.clock_set_back);
        at.0.saturating_sub(self.begin.0).saturating_add(set_back).min(MAX_TIME)
    }

    /// Returns the time from which the connection is judged, in nanoseconds since its first packet.
    pub(crate) fn judged_from(&self) -> i64 {
        self.rare.get().map_or(0, |rare| rare.judged_from)
    }

    /// Returns the minimum round trip in nanoseconds, if it is known.
    pub(crate) fn round_trip(&self) -> Option<i64> {
        let [one, other] = self.reply_delays.each_ref().map(ReplyDelay::min);
        Some(one?.saturating_add(other?))
    }

    /// Records that `at` has come without another packet.
    pub(crate) fn wait_until(&mut self, at: Timestamp) {
        self.now = self.now.max(self.time_of(at));
    }

    pub(crate) fn last_packet(&self) -> Timestamp {
        Timestamp(self.begin.0.saturating_add(self.now))
    }

    /// Returns the results. `resolution` is the step of the capture's clock in nanoseconds, or 0 if unknown.
    pub(crate) fn finish(self, resolution: i64) -> Ended {
        let response_times = [self.reply_delays[0].min(), self.reply_delays[1].min()];
        let clock_difference = self.clock_difference();
        let clock_resolution_seconds = (resolution > 0).then_some(resolution as f64 / 1e9);
        // Times between packets of different directions are wrong if their clocks differ.
        let response_times = response_times.map(|time| time.filter(|_| clock_difference.is_none()));
        let capture_at = capture_point::locate(response_times, resolution);
        let mss = [self.directions[0].syn_mss(), self.directions[1].syn_mss()];
        let icmp = self.rare.get().map(|rare| &rare.icmp);
        let mut handshake = self.handshake.findings(mss, icmp);
        // A time of 0 is shorter than a step of the clock.
        handshake.rtt_seconds = handshake.rtt_seconds.filter(|seconds| *seconds > 0.0);
        if clock_difference.is_some() {
            (handshake.syn_to_syn_ack_seconds, handshake.syn_ack_to_ack_seconds) = (None, None);
        }
        let ends = self.ends.both();
        let base_rtt = response_times[0].unwrap_or(0).saturating_add(response_times[1].unwrap_or(0));
        let [first_mtu, second_mtu] = self.path_mtu;
        let [first, second] = self.directions;
        let finish = |direction: DirectionAnalysis, path_mtu: PathMtu, from: usize| {
            let path_mtu = path_mtu.findings(direction.has_acks());
            let has_one_clock = clock_difference.is_none();
            let view = CaptureView { capture_at, has_one_clock, clock_resolution_seconds };
            let (findings, trace) = direction.findings(ends, from, view, mss[1 - from], base_rtt);
            (DirectionFindings { path_mtu, ..findings }, trace)
        };
        let (first, first_trace) = finish(first, first_mtu, 0);
        let (second, second_trace) = finish(second, second_mtu, 1);
        let rare = self.rare.into_inner();
        let mut findings = ConnectionFindings {
            verdict: Verdict::default(),
            ends,
            first_packet: self.first_packet,
            begin_unix_ns: self.begin.0.saturating_add(rare.judged_from),
            seconds: (self.now - rare.judged_from) as f64 / 1e9,
            packets: self.packets.into(),
            copies: u64::from(rare.copied),
            clock_went_back: u64::from(rare.clock_went_back),
            clock_resolution_seconds,
            clock_difference_seconds: clock_difference.map(|ns| ns as f64 / 1e9),
            name: self.server_name.into_name(),
            handshake,
            capture_at,
            answers_after_seconds: response_times.map(|ns| ns.map(|ns| ns as f64 / 1e9)),
            close: self.ending.into(),
            timestamps: self.handshake.uses_timestamps(),
            sack: self.handshake.uses_sack(),
            ecn: self.handshake.uses_ecn(),
            answers: self.turns.answers(),
            turns: self.turns.findings(response_times),
            active_seconds: (self.turns.last_data_at() - rare.judged_from).max(0) as f64 / 1e9,
            icmp: rare.icmp.into_findings(),
            directions: [first, second],
        };
        findings.verdict = verdict::judge(&findings, rare.judged_from == 0);
        Ended { findings, traces: first_trace.zip(second_trace).map(<[Trace; 2]>::from) }
    }

    fn context(&self, sender: usize, silence: i64) -> PacketContext {
        PacketContext {
            at: self.now,
            silence,
            sender_reply_delay: self.reply_delays[sender].min().unwrap_or(0),
            round_trip: self.round_trip(),
            peer_syn_tsval: self.reply_delays[sender].timestamps().map(|[first, _]| first),
            hides_sacks: self.handshake.hides_sacks(),
            peer_mss: self.directions[1 - sender].syn_mss(),
            is_answer: self.turns.is_answer(sender),
        }
    }

    /// Returns whether the packet belongs to an earlier connection. The other end may still have one while a
    /// SYN is unanswered. Its packets acknowledge something other than the SYN (RFC 9293 §3.10.7.3, RFC 5961
    /// §4).
    fn is_of_earlier_connection(&self, packet: &Packet, from: usize) -> bool {
        self.handshake.has_syn(1 - from)
            && !self.handshake.has_syn(from)
            && (packet.ack.is_some() || !packet.flags.contains(Flags::SYN))
            && !self.directions[1 - from].may_be_acknowledged_by(packet.ack)
    }

    /// Processes a packet with payload. `sent_before` is the end of all data sent earlier.
    fn process_data(&mut self, packet: &Packet, from: usize, sent_before: u64) {
        let direction = &self.directions[from];
        let Some(start) = direction.offset(packet.seq) else { return };
        let is_new = direction.sent_end() > sent_before;
        if is_new {
            self.turns.new_data(self.now, from, self.handshake.opened_at(), packet.number);
        }
        let ip = if packet.src.is_ipv4() { 20 } else { 40 };
        let segment = self.directions[from].path_segment();
        let headers = (packet.len <= segment).then_some(ip + 20);
        self.path_mtu[from].sent(start, packet.len.min(segment), is_new, packet.number, headers);
    }

    fn process_handshake(&mut self, packet: &Packet, from: usize) {
        if self.handshake.update_stage(packet, from) {
            self.ending = Ending::Open;
        }
        if let Some(response_time) = self.handshake.process(self.now, packet, from) {
            self.reply_delays[from].add(response_time);
        }
        if packet.flags.contains(Flags::SYN)
            && let Some([first, second]) = self.handshake.window_scales()
        {
            // The data of one end is limited by the window of the other end.
            self.directions[0].set_window_scale(second);
            self.directions[1].set_window_scale(first);
        }
        if packet.flags.contains(Flags::SYN) {
            let mss = packet.options.mss.into_iter().chain(self.directions[1 - from].syn_mss()).min();
            for direction in &mut self.directions {
                direction.set_max_segment(mss, self.handshake.uses_timestamps());
            }
        }
    }

    fn update_reply_delays(&mut self, packet: &Packet, from: usize) {
        self.reply_delays[from].process_reply(self.now, packet);
        self.reply_delays[1 - from].process_request(self.now, packet);
        if let Some(min) = self.directions[1 - from].min_rtt() {
            self.reply_delays[from].add(min);
        }
    }

    fn update_close(&mut self, packet: &Packet, from: usize) {
        if self.is_over() {
            return;
        }
        if packet.flags.contains(Flags::RST) {
            if self.directions[from].may_be_reset_by(packet.seq) {
                self.ending = Ending::Reset { by: from as u8 };
            }
        } else if self.directions.iter().all(DirectionAnalysis::is_fin_acked) {
            self.ending = Ending::Closed;
        }
    }
}
