//! The peer: a small state machine that makes segments from the plan and from the segments that it has
//! received.
//!
//! The same code plays against the kernel and against airtcp. The plan contains every segment of the peer, or
//! the time at which a [`Receiver`] may acknowledge the segments that have arrived.

use std::net::SocketAddr;
use std::ops::Range;

use airwire::options::{Layout, Options, SackBlocks, Timestamps};
use airwire::segment::{self, Ecn, Flags, Header, Segment};
use airwire::seq::Seq;
use airwire::time::Duration;

use crate::observed::{BlockEdge, Observed, SeqNumber};
use crate::plan::{AckNumber, At, Offers, Plan, PlannedSegment, TimestampChoice};
use crate::receiver::{Acknowledgment, Receiver};

/// The state of the peer. Numbers are offsets in the two streams. The SYN has offset 0.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub addr: SocketAddr,
    offers: Offers,
    iss: Seq,
    clock: u32,
    /// One past the last byte sent, without segments beyond the window.
    next: u64,
    /// Our side's initial sequence number.
    irs: Option<Seq>,
    /// The segments that our side has sent and the peer has not acknowledged, in sequence order, without
    /// duplicates.
    outstanding: Vec<(u64, u64)>,
    /// One past the last byte that our side has sent.
    received_max: u64,
    /// The peer's acknowledgement number: one past the last byte that it has acknowledged.
    acked: u64,
    /// The highest acknowledgement number of our side.
    pub their_ack: u64,
    /// The right edge of our side's window.
    edge: u64,
    /// The right edge that a segment of the plan referred to.
    named_edge: Option<u64>,
    their_scale: Option<u8>,
    their_sack: bool,
    their_stamps: bool,
    ts_recent: u32,
    window: u32,
    receiver: Option<Receiver>,
    /// Whether our side has retransmitted data.
    pub retransmitted: bool,
    pub reset: bool,
}

/// The state of a peer that later steps depend on.
pub(crate) type View = (u64, u64, u64, u16, bool);

/// The ends of SACK blocks that lie nearer to the named edge than this are counted from the edge.
const NEAR_EDGE: u64 = 5000;

/// A segment of the peer, ready to be sent.
pub(crate) struct BuiltSegment {
    pub packet: Vec<u8>,
    /// The segment in a script.
    pub text: String,
    /// The words that describe it: see `expected.toml`.
    pub words: Vec<String>,
}

impl Peer {
    pub(crate) fn new(addr: SocketAddr, plan: &Plan) -> Self {
        Self {
            addr,
            offers: plan.offers,
            iss: Seq(plan.iss),
            clock: plan.clock,
            next: 0,
            irs: None,
            outstanding: Vec::new(),
            received_max: 0,
            acked: 0,
            their_ack: 0,
            edge: 0,
            named_edge: None,
            their_scale: None,
            their_sack: false,
            their_stamps: false,
            ts_recent: 0,
            window: plan.offers.window,
            receiver: plan.path.clone().map(Receiver::new),
            retransmitted: false,
            reset: false,
        }
    }

    /// The values that must be the same in two plays, so that the following steps can be compared.
    pub(crate) fn view(&self) -> View {
        let arrivals = self.receiver.as_ref().map_or(0, Receiver::sent);
        (self.received_max, self.acked, self.their_ack, arrivals, self.reset)
    }

    fn scales(&self) -> bool {
        self.offers.scale.is_some() && self.their_scale.is_some()
    }

    fn stamps(&self) -> bool {
        self.offers.timestamps && self.their_stamps
    }

    /// Records a segment of our side.
    pub(crate) fn observe(
        &mut self,
        at: Duration,
        prompt: bool,
        segment: &Segment<'_>,
        packet: &[u8],
    ) -> Observed {
        self.record_options(segment);
        let has_ack = segment.flags.contains(Flags::ACK);
        let seq = self.seq_number(segment);
        let ack = has_ack.then(|| segment.ack.offset(self.iss, self.next)).flatten();
        let window = self.window_of(segment);
        if segment.flags.contains(Flags::RST) {
            self.reset = true;
        } else {
            self.record_range(seq, segment);
            if let Some(ack) = ack {
                self.their_ack = self.their_ack.max(ack);
                self.edge = self.edge.max(ack + window);
            }
        }
        let options = &segment.options;
        let epoch = if has_ack { self.clock } else { 0 };
        Observed {
            at,
            prompt,
            flags: segment.flags,
            seq,
            ack,
            len: segment.payload.len(),
            window,
            kinds: crate::observed::kinds(packet),
            mss: options.mss,
            scale: options.window_scale,
            ecr: options.timestamps.map(|ts| ts.ecr.wrapping_sub(epoch) as i32),
            sack: options.sack.as_slice().iter().map(|block| self.block_edges(*block)).collect(),
            ecn: segment.ecn,
            ip: crate::observed::ip(packet),
        }
    }

    /// Records what the options of our side's segment negotiate, and its timestamp.
    fn record_options(&mut self, segment: &Segment<'_>) {
        if segment.flags.contains(Flags::SYN) {
            self.irs = Some(segment.seq);
            self.their_scale = segment.options.window_scale;
            self.their_sack = segment.options.sack_permitted;
            self.their_stamps = segment.options.timestamps.is_some();
        }
        if let Some(timestamps) = segment.options.timestamps {
            self.ts_recent = timestamps.val;
        }
    }

    fn seq_number(&self, segment: &Segment<'_>) -> SeqNumber {
        match self.irs {
            _ if segment.flags.contains(Flags::RST) && segment.seq == Seq(0) => SeqNumber::Zero,
            Some(irs) => SeqNumber::Offset(signed(segment.seq, irs, self.received_max)),
            None => SeqNumber::Raw(segment.seq.0),
        }
    }

    /// Returns the window of our side's segment in bytes. The window of a SYN is not scaled.
    fn window_of(&self, segment: &Segment<'_>) -> u64 {
        let is_scaled = self.scales() && !segment.flags.contains(Flags::SYN);
        u64::from(segment.window) << self.their_scale.filter(|_| is_scaled).unwrap_or(0)
    }

    /// Returns the ends of a SACK block of our side.
    fn block_edges(&self, (left, right): (Seq, Seq)) -> (BlockEdge, BlockEdge) {
        let edge = |seq: Seq| {
            let at = seq.offset(self.iss, self.next).unwrap_or(0);
            match self.named_edge {
                Some(edge) if at + NEAR_EDGE > edge => BlockEdge::FromEdge(at as i64 - edge as i64),
                _ => BlockEdge::At(at),
            }
        };
        (edge(left), edge(right))
    }

    /// Records the sequence numbers of a segment of our side.
    fn record_range(&mut self, seq: SeqNumber, segment: &Segment<'_>) {
        let SeqNumber::Offset(start) = seq else { return };
        let Ok(start) = u64::try_from(start) else { return };
        let end = start + segment.seq_len();
        self.retransmitted |= !segment.payload.is_empty() && start < self.received_max;
        if !segment.flags.contains(Flags::SYN)
            && end > start
            && let Some(receiver) = &mut self.receiver
        {
            receiver.observe(start, end);
        }
        let known = self.outstanding.iter().any(|(from, to)| *from <= start && end <= *to);
        if end > self.acked.max(start) && !known {
            self.outstanding.push((start, end));
            self.outstanding.sort_unstable();
        }
        self.received_max = self.received_max.max(end);
    }

    /// Builds a segment of the plan. Returns `None` if no segment has arrived that it could acknowledge, or if
    /// it would begin below the stream.
    pub(crate) fn build(
        &mut self,
        planned: &PlannedSegment,
        now: Duration,
        to: SocketAddr,
    ) -> Option<BuiltSegment> {
        let syn = planned.flags.contains(Flags::SYN);
        let start = self.start_of(planned)?;
        let end =
            start + u64::from(planned.len) + u64::from(syn) + u64::from(planned.flags.contains(Flags::FIN));
        let answer = match (planned.ack, &mut self.receiver) {
            (AckNumber::Arrived(count), Some(receiver)) => Some(receiver.acknowledge(count)?),
            _ => None,
        };
        let mut words = self.position_words(planned, start, end);
        let ack_number = answer.as_ref().map(|answer| answer.next);
        let ack =
            planned.flags.contains(Flags::ACK).then(|| self.acknowledge(planned.ack, ack_number, &mut words));
        let window = self.set_window(planned.window, syn, &mut words);
        let mut options = self.options(planned, now, ack.is_some(), &mut words);
        if let Some(answer) = &answer {
            options.sack = self.blocks_of(answer, &mut words);
        }
        if matches!(planned.at, At::Next(by) if by >= 0) || planned.at == At::Start || end <= self.edge {
            self.next = self.next.max(end);
        }
        let header = Header {
            seq: self.iss.at(start),
            ack: ack.map_or(Seq(0), |ack| self.irs.unwrap_or(Seq(0)).at(ack)),
            flags: self.flags_of(planned),
            window,
            ecn: planned.ecn,
            ..self.header(to)
        };
        let first = start + u64::from(syn);
        let packet = build_packet(&header, &options, first..first + u64::from(planned.len));
        let text = self.script_line(planned, start, ack, &header, &options);
        Some(BuiltSegment { packet, text, words })
    }

    /// Returns the offset of a planned segment, or `None` if it would begin below the stream.
    fn start_of(&mut self, planned: &PlannedSegment) -> Option<u64> {
        let syn = planned.flags.contains(Flags::SYN);
        match planned.at {
            At::Start => Some(0),
            At::Next(by) => self.next.max(u64::from(!syn)).checked_add_signed(by.into()),
            At::Acked(by) => self.their_ack.max(1).checked_add_signed(by.into()),
            At::Edge(by) => self.named_edge.insert(self.edge.max(1)).checked_add_signed(by.into()),
        }
    }

    /// Returns the flags of a planned segment. A SYN that offers ECN has the flags of RFC 3168 §6.1.1.
    fn flags_of(&self, planned: &PlannedSegment) -> Flags {
        let flags = planned.flags;
        match (flags.contains(Flags::SYN) && self.offers.ecn, flags.contains(Flags::ACK)) {
            (true, false) => flags.with(Flags::ECE).with(Flags::CWR),
            (true, true) => flags.with(Flags::ECE),
            (false, _) => flags,
        }
    }

    /// Returns a header of the peer without numbers and flags.
    fn header(&self, to: SocketAddr) -> Header {
        Header {
            src: self.addr,
            dst: to,
            seq: Seq(0),
            ack: Seq(0),
            flags: Flags::default(),
            window: 0,
            ecn: Ecn::NotEct,
            tos: 0,
            ttl: 64,
            dont_fragment: true,
            ident: 0,
        }
    }

    /// Changes the window of the peer, and returns the window field of its next segment.
    fn set_window(&mut self, planned: Option<u32>, syn: bool, words: &mut Vec<String>) -> u16 {
        if let Some(window) = planned {
            let word = match window {
                0 => "window:zero",
                w if w < self.window => "window:shrunk",
                w if w > self.window => "window:wider",
                _ => "window:same",
            };
            words.push(word.to_owned());
            self.window = window;
        }
        let scale = if self.scales() && !syn { self.offers.scale.unwrap_or(0).min(14) } else { 0 };
        let field = (self.window >> scale).min(65_535) as u16;
        if field == 0 && planned != Some(0) {
            words.push("window:zero".to_owned());
        }
        field
    }

    /// Returns the line of a script that shows a segment of the peer.
    fn script_line(
        &self,
        planned: &PlannedSegment,
        start: u64,
        ack: Option<u64>,
        header: &Header,
        options: &Options,
    ) -> String {
        let (flags, len) = (header.flags, planned.len);
        let mut text = format!("{flags:?} {start}:{}({len})", start + u64::from(len));
        if let Some(ack) = ack {
            text += &format!(" ack {}", ack as i64);
        }
        text += &format!(" win {}", header.window);
        let offset = |seq: &Seq| self.irs.map_or(0, |irs| signed(*seq, irs, self.received_max));
        let blocks: Vec<_> = (options.sack.as_slice().iter())
            .map(|(from, to)| format!("{}:{}", offset(from), offset(to)))
            .collect();
        let listed: Vec<String> = [
            options.mss.map(|mss| format!("mss {mss}")),
            options.sack_permitted.then(|| "sackOK".to_owned()),
            options.timestamps.map(|ts| format!("TS val {}", ts.val.wrapping_sub(self.clock) as i32)),
            options.window_scale.map(|scale| format!("wscale {scale}")),
            (!blocks.is_empty()).then(|| format!("sack {}", blocks.join(" "))),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !listed.is_empty() {
            text += &format!(" <{}>", listed.join(","));
        }
        if planned.ecn != Ecn::NotEct {
            text += &format!(" [{:?}]", planned.ecn);
        }
        text
    }

    /// Returns the words for the position of a segment in the stream and in our side's window.
    fn position_words(&self, planned: &PlannedSegment, start: u64, end: u64) -> Vec<String> {
        let expected = self.their_ack.max(1);
        let word = match () {
            () if start > self.edge.max(1) => "seq:beyond",
            () if start == self.edge && end > start => "seq:at-edge",
            () if end > self.edge.max(1) && end > start => "seq:over-edge",
            () if start == self.next.max(1) => "seq:next",
            () if start > self.next => "seq:gap",
            () if end > self.next && start < self.next => "seq:overlap",
            () if start >= expected => "seq:again",
            () if end <= expected => "seq:old",
            () => "seq:partly-old",
        };
        let edge = matches!(planned.at, At::Edge(_)).then_some("edge");
        let is_bare = !planned.flags.intersects(Flags::ACK.with(Flags::SYN).with(Flags::RST));
        [edge, Some(word), is_bare.then_some("no-ack")].into_iter().flatten().map(str::to_owned).collect()
    }

    /// Returns the acknowledgement number as an offset. `arrived` is the number from the receiver, if it sends
    /// the ACK.
    fn acknowledge(&mut self, ack_number: AckNumber, arrived: Option<u64>, words: &mut Vec<String>) -> u64 {
        let contiguous = self
            .outstanding
            .iter()
            .fold(self.acked, |end, (from, to)| if *from <= end { end.max(*to) } else { end });
        let ends: Vec<u64> =
            self.outstanding.iter().map(|(_, to)| *to).filter(|to| *to > self.acked).collect();
        let (ack, word) = match ack_number {
            AckNumber::All => (contiguous, if contiguous > self.acked { "ack:new" } else { "ack:same" }),
            AckNumber::Arrived(_) => {
                let ack = arrived.unwrap_or(self.acked).max(self.acked);
                (ack, if ack > self.acked { "ack:new" } else { "ack:same" })
            }
            AckNumber::More(0) => (self.acked, "ack:same"),
            AckNumber::More(count) => {
                let some = ends.get(usize::from(count) - 1).copied().unwrap_or(contiguous).min(contiguous);
                (some, if some > self.acked { "ack:new" } else { "ack:same" })
            }
            AckNumber::Less(by) => (self.acked.saturating_sub(by.into()), "ack:old"),
            AckNumber::Unsent(by) => (self.received_max + u64::from(by), "ack:unsent"),
        };
        if word == "ack:new" {
            self.acked = ack;
            self.outstanding.retain(|(_, to)| *to > ack);
        }
        words.push(word.to_owned());
        if ack_number == AckNumber::Less(100_000) { ack.wrapping_sub(100_000) } else { ack }
    }

    fn options(
        &self,
        planned: &PlannedSegment,
        now: Duration,
        acks: bool,
        words: &mut Vec<String>,
    ) -> Options {
        let val = self.clock.wrapping_add(now.as_millis() as u32);
        let ecr = if acks { self.ts_recent } else { 0 };
        let mut options = Options::default();
        if planned.flags.contains(Flags::SYN) {
            options.mss = self.offers.mss;
            options.window_scale = self.offers.scale;
            options.sack_permitted = self.offers.sack;
            options.timestamps = self.offers.timestamps.then_some(Timestamps { val, ecr });
            return options;
        }
        if planned.flags.contains(Flags::RST) {
            return options;
        }
        if self.stamps() {
            match planned.stamp {
                TimestampChoice::Now => options.timestamps = Some(Timestamps { val, ecr }),
                TimestampChoice::Old(by) => {
                    words.push("stamp:old".to_owned());
                    options.timestamps = Some(Timestamps { val: val.wrapping_sub(by), ecr });
                }
                TimestampChoice::Missing => words.push("stamp:missing".to_owned()),
            }
        }
        if planned.sack > 0 {
            options.sack = self.blocks_of_last(planned.sack.into(), words);
        }
        options
    }

    /// Returns SACK blocks for the last `count` outstanding segments, except the first outstanding segment.
    fn blocks_of_last(&self, count: usize, words: &mut Vec<String>) -> SackBlocks {
        let mut sack = SackBlocks::default();
        let Some(irs) = self.irs.filter(|_| self.offers.sack && self.their_sack) else { return sack };
        let first = self.outstanding.len().saturating_sub(count).max(1);
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        for (from, to) in self.outstanding.iter().skip(first) {
            match blocks.last_mut() {
                Some(last) if last.1 == *from => last.1 = *to,
                _ => blocks.push((*from, *to)),
            }
        }
        for (from, to) in blocks.iter().rev().take(3) {
            sack.push(irs.at(*from), irs.at(*to));
        }
        if !sack.is_empty() {
            words.push("sack".to_owned());
        }
        sack
    }

    /// Returns the SACK blocks of the receiver's ACK.
    fn blocks_of(&self, answer: &Acknowledgment, words: &mut Vec<String>) -> SackBlocks {
        let mut sack = SackBlocks::default();
        let Some(irs) = self.irs.filter(|_| self.offers.sack && self.their_sack) else { return sack };
        let most = if self.stamps() { 3 } else { 4 };
        for (from, to) in answer.blocks.iter().take(most) {
            sack.push(irs.at(*from), irs.at(*to));
        }
        if !sack.is_empty() {
            words.push(if answer.has_dsack { "dsack" } else { "sack" }.to_owned());
        }
        sack
    }

    /// Returns a reset that makes our side delete the connection.
    pub(crate) fn final_reset(&self, to: SocketAddr) -> Vec<u8> {
        let header = Header {
            seq: self.iss.at(self.their_ack.max(1)),
            ack: self.irs.map_or(Seq(0), |irs| irs.at(self.received_max)),
            flags: Flags::RST.with(Flags::ACK),
            ..self.header(to)
        };
        build_packet(&header, &Options::default(), 0..0)
    }
}

/// Builds a packet with this range of the peer's stream.
fn build_packet(header: &Header, options: &Options, range: Range<u64>) -> Vec<u8> {
    let (mut written, mut packet) = (Vec::new(), Vec::new());
    options.write(Layout::Linux, &mut written);
    let payload: Vec<u8> = range.map(stream_byte).collect();
    segment::emit(&mut packet, header, &written, (&payload, &[]));
    packet
}

/// Like [`Seq::offset`], also below the beginning of the stream.
fn signed(number: Seq, initial: Seq, near: u64) -> i64 {
    near as i64 + i64::from(number.0.wrapping_sub(initial.at(near).0) as i32)
}

/// The byte at this offset of the peer's stream.
pub(crate) fn stream_byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9) >> 13) as u8
}
