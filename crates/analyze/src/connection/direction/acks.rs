//! Processes packets of the data's receiver: the data that they acknowledge, and the conclusions.

use std::ops::Range;

use aircaptures::packet::Packet;
use airwire::marks;
use airwire::segment::Flags;
use airwire::seq::Seq;

use super::ack_policy::{Acked, WAITED};
use super::anomalies::Uncaptured;
use super::flight::Segment;
use super::limits::PeriodEnd;
use super::recovery::Recovery;
use super::series::Counted;
use super::{DirectionAnalysis, PacketContext};
use crate::compact::CompactOption;
use crate::rtt::Measured;
use crate::trace::{AckSeen, RttSample};

/// Bytes beyond the captured data that an ACK may cover, because the capture may have missed them. An ACK for
/// more does not belong to this stream.
pub(super) const MAX_UNCAPTURED: u64 = 1 << 26;
/// The MSS without the option (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;
/// The two bits of E-TCP (docs/reference/header-extensions.md).
const OB: Flags = Flags(marks::OB);
const DB: Flags = Flags(marks::DB);

/// The segments that an ACK covers completely.
#[derive(Default)]
struct Covered {
    first: Option<Segment>,
    last: Option<Segment>,
    /// Whether a segment was sent twice or had been SACKed, so that the ACK does not time `last` alone.
    ambiguous: bool,
    /// Send time of the transmission whose timestamp is echoed.
    echoed: Option<i64>,
    /// Number of segments that arrived after later ones and were not retransmitted.
    overtaken: u32,
    /// One past the last byte processed.
    next: u64,
    /// Ranges that the capture does not contain.
    holes: Vec<Range<u64>>,
    /// Segments that were retransmitted after a timeout and have not arrived before.
    repaired: Vec<Range<u64>>,
}

impl Covered {
    fn reach(&mut self, range: Range<u64>) {
        if range.start > self.next {
            self.holes.push(self.next..range.start);
        }
        self.next = self.next.max(range.end);
    }
}

/// Determines the send time of the newest copy that an ACK shows to have arrived.
struct NewestArrival {
    ack_at: i64,
    /// The timestamp that the ACK echoes.
    echo: Option<u32>,
    /// Minimum RTT so far, or 0 before the first sample.
    min_rtt: i64,
    sent_at: i64,
    /// When the newest of the segments that were transmitted once was sent. Linux measures the RTT with it.
    sent_once_at: Option<i64>,
}

impl NewestArrival {
    fn new(context: &PacketContext, packet: &Packet, min_rtt: Option<i64>) -> Self {
        let echo = packet.options.timestamps.map(|timestamps| timestamps.ecr);
        Self { ack_at: context.at, echo, min_rtt: min_rtt.unwrap_or(0), sent_at: 0, sent_once_at: None }
    }

    /// Processes a segment that has arrived. RFC 8985 §6.2, step 2: the ACK of a retransmitted segment may be
    /// for the original transmission. As in Linux, an echoed timestamp counts only if it identifies the
    /// retransmission: with SACK, the echo is the timestamp of the last segment that arrived in order.
    fn add(&mut self, segment: &Segment) {
        if segment.times == 1 {
            self.sent_once_at = self.sent_once_at.max(Some(segment.last_at));
        }
        let is_second = self.echo == Some(segment.last_tsval) && segment.first_tsval != segment.last_tsval;
        if segment.times == 1 || is_second || self.ack_at - segment.last_at >= self.min_rtt {
            self.sent_at = self.sent_at.max(segment.last_at);
        }
    }
}

impl DirectionAnalysis {
    /// Processes a packet of the data's receiver, which acknowledges `seq`.
    pub(in crate::connection) fn process_ack(&mut self, context: &PacketContext, packet: &Packet, seq: Seq) {
        let period_end = self.process_ack_number(context, packet, seq);
        self.account_time(context, period_end);
    }

    fn process_ack_number(&mut self, context: &PacketContext, packet: &Packet, seq: Seq) -> PeriodEnd {
        self.begin(seq);
        let Some(ack) = self.offset(seq).filter(|ack| *ack <= self.flight.max + MAX_UNCAPTURED) else {
            return PeriodEnd::Other;
        };
        self.counts.acks += 1;
        self.count_ack_marks(packet);
        let una = self.flight.initialize_una(ack);
        let has_new_sacks = self.process_sacks(context, packet, ack, una);
        let duplicate = self.is_duplicate(packet, ack, una);
        self.update_window(packet, ack);
        // A FIN shows that the other end is there, but not that data arrives.
        let is_answer = ack > una || !packet.flags.contains(Flags::FIN);
        if let Some(anomalies) = self.anomalies.get_mut().filter(|_| is_answer) {
            anomalies.outages.heard(context.at, packet.number);
        }
        let mut period_end = PeriodEnd::Other;
        if ack > una {
            if self.advance(context, packet, ack, una) > 0 {
                period_end = PeriodEnd::DataAcked;
            }
        } else if ack < una {
            self.anomalies.get_or_default().acks.old += 1;
        } else {
            if duplicate {
                self.anomalies.get_or_default().acks.duplicate += 1;
            }
            // RFC 6675 §2: with SACK, an ACK counts as duplicate if it contains new SACK information.
            if duplicate || has_new_sacks && self.flight.is_outstanding() && packet.seq_len() == 0 {
                self.dupacks += 1;
            }
        }
        if ack >= una {
            self.ack_times.last = CompactOption::time(context.at);
            self.ack_is_answered = false;
        }
        self.observe_ack(context, packet, ack.saturating_sub(una));
        if self.trace.is_some() {
            self.record_ack(context, packet, ack, duplicate);
        }
        period_end
    }

    fn count_ack_marks(&mut self, packet: &Packet) {
        if packet.flags.contains(Flags::ECE) && !packet.flags.contains(Flags::SYN) {
            self.anomalies.get_or_default().acks.ece += 1;
        }
        if packet.flags.intersects(OB.with(DB)) && !packet.flags.intersects(Flags::SYN.with(Flags::RST)) {
            let marks = self.marks.get_or_default();
            marks.ob += u64::from(packet.flags.contains(OB));
            marks.db += u64::from(packet.flags.contains(DB));
        }
        if let Some(report) = packet.options.loss_report {
            let marks = self.marks.get_or_default();
            marks.loss_reports += 1;
            marks.last_loss_report = Some(report.ratio());
        }
        if packet.options.reordered.is_some() {
            self.marks.get_or_default().reordering_alarm = packet.options.reordered;
        }
    }

    fn sack_blocks(&self, packet: &Packet) -> impl Iterator<Item = Range<u64>> {
        let blocks = packet.options.sack.as_slice().iter();
        blocks.filter_map(|(left, right)| Some(self.offset(*left)?..self.offset(*right)?))
    }

    /// Processes SACK blocks. Returns whether they report new data.
    fn process_sacks(&mut self, context: &PacketContext, packet: &Packet, ack: u64, una: u64) -> bool {
        if packet.options.sack.is_empty() {
            return false;
        }
        let mut blocks = [const { 0..0 }; 4];
        let mut count = 0;
        for block in self.sack_blocks(packet) {
            blocks[count] = block;
            count += 1;
        }
        let acks = &mut self.anomalies.get_or_default().acks;
        acks.with_sack += 1;
        acks.sack_blocks += count as u64;
        let mut is_new = false;
        let mut newest = NewestArrival::new(context, packet, self.rtt.min());
        for (index, block) in blocks[..count].iter().enumerate() {
            // RFC 2883 §4: the first block is a D-SACK if it is below the ACK number or within the second
            // block.
            let within = |outer: &Range<u64>| outer.start <= block.start && block.end <= outer.end;
            if index == 0 && (block.end <= ack || count > 1 && within(&blocks[1])) {
                self.anomalies.get_or_default().acks.dsacks += 1;
                self.process_dsack(block);
            } else if block.end > una && block.end <= self.flight.max && block.start < block.end {
                let range = block.start.max(una)..block.end;
                is_new |= self.flight.sack(range, |segment| newest.add(segment));
            }
        }
        self.record_arrival(context, &newest);
        is_new
    }

    fn record_arrival(&mut self, context: &PacketContext, newest: &NewestArrival) {
        let at = context.at;
        if let (Some(round_trips), Some(sent_at)) = (&mut self.round_trips, newest.sent_once_at) {
            round_trips.add_sender_rtt(at - sent_at, context.sender_reply_delay);
        }
        let Some(anomalies) = self.anomalies.get_mut() else { return };
        anomalies.newest_arrived = anomalies.newest_arrived.max(newest.sent_at);
        // Segments of one burst may have the same send time. Only those below SACKed data were sent earlier.
        let oldest = self.flight.oldest().filter(|segment| self.flight.sacked_above(segment.start));
        let overtaken = oldest.map(|oldest| oldest.last_at).filter(|at| *at <= anomalies.newest_arrived);
        anomalies.oldest_overtaken = match (overtaken, anomalies.oldest_overtaken) {
            (Some(sent_at), Some(known)) if known[0] == sent_at => Some(known),
            (Some(sent_at), _) => Some([sent_at, at]),
            (None, _) => None,
        };
    }

    /// Returns whether the ACK is a duplicate (RFC 5681 §2). The reply to a zero-window probe is not a
    /// duplicate ACK.
    fn is_duplicate(&self, packet: &Packet, ack: u64, una: u64) -> bool {
        ack == una
            && self.flight.is_outstanding()
            && packet.seq_len() == 0
            && !packet.flags.contains(Flags::RST)
            && packet.window > 0
            && self.window.equals_field_of(packet)
    }

    fn update_window(&mut self, packet: &Packet, ack: u64) {
        if packet.flags.contains(Flags::RST) || ack < self.una() {
            return;
        }
        let change = self.window.update(packet, ack);
        if change.closes {
            self.anomalies.get_or_default().zero_windows += 1;
        }
        if change.shrinks {
            self.anomalies.get_or_default().shrunk += 1;
        }
    }

    /// Processes an ACK for new data. Returns the number of newly acknowledged data bytes.
    fn advance(&mut self, context: &PacketContext, packet: &Packet, ack: u64, una: u64) -> u64 {
        let echo = packet.options.timestamps.map(|timestamps| timestamps.ecr);
        let last_ack = self.ack_times.last.as_time();
        let covered = self.acknowledge(context, packet, ack, una);
        self.measure_rtt(context, ack, &covered);
        self.count_policy(context, packet, ack - una, &covered, last_ack);
        if let (Some(first), Some(echo)) = (&covered.first, echo) {
            self.compare_timestamps(first, echo);
        }
        for range in covered.holes {
            let missing = Uncaptured { first_end: range.end, range, at: context.at, echo };
            // If the capture does not contain any data, it will probably not contain this data either.
            let merge = self.counts.data_packets == 0;
            self.anomalies.get_or_default().add_uncaptured(missing, merge);
        }
        for range in &covered.repaired {
            self.anomalies.get_or_default().repaired_after_timeout(range);
        }
        let data = self.count_acked(context, ack, una);
        self.dupacks = 0;
        self.sent_on_dupacks = false;
        self.ack_times.advanced = [context.at, self.ack_times.advanced[0]];
        self.update_recovery(context.at, ack);
        data
    }

    /// Removes the acknowledged segments from the flight.
    fn acknowledge(&mut self, context: &PacketContext, packet: &Packet, ack: u64, una: u64) -> Covered {
        let syn = self.numbering.syn_range();
        let mut covered = Covered { next: una.max(syn.end.min(ack)), ..Covered::default() };
        let mut newest = NewestArrival::new(context, packet, self.rtt.min());
        let echo = newest.echo;
        let (pass, recover) = (self.flight.pass, self.recovery.after_timeout().unwrap_or(0));
        let sacked_end = self.flight.sacked_end();
        let part = self.flight.acknowledge(ack, |segment| {
            covered.reach(segment.start..segment.end);
            if segment.end > syn.start && segment.start < syn.end {
                return;
            }
            if !segment.sacked {
                newest.add(segment);
            }
            covered.overtaken +=
                u32::from(!segment.sacked && segment.times == 1 && segment.end <= sacked_end);
            covered.ambiguous |= segment.times > 1 || segment.sacked;
            if segment.start < recover && segment.times > 1 && segment.pass == pass {
                // The ACK for the original would echo an older timestamp, or arrive within a round trip.
                let by_echo = echo.filter(|_| segment.first_tsval != segment.last_tsval);
                let is_needed = match by_echo {
                    Some(echo) => (echo.wrapping_sub(segment.last_tsval) as i32) >= 0,
                    None => newest.ack_at - segment.last_at >= newest.min_rtt,
                };
                if is_needed && !segment.sacked {
                    covered.repaired.push(segment.start..segment.end);
                }
            }
            if let (Some(echo), None) = (echo, covered.echoed) {
                covered.echoed = match (segment.first_tsval == echo, segment.last_tsval == echo) {
                    // Two transmissions within one clock tick cannot be distinguished.
                    (true, true) if segment.times == 1 => Some(segment.first_at),
                    (true, false) => Some(segment.first_at),
                    (false, true) => Some(segment.last_at),
                    _ => None,
                };
            }
            covered.first.get_or_insert(*segment);
            covered.last = Some(*segment);
        });
        covered.reach(part);
        self.record_arrival(context, &newest);
        if let Some(round_trips) = &mut self.round_trips {
            round_trips.add_overtaken(covered.overtaken);
        }
        covered
    }

    /// Updates the recovery and the rounds after an ACK for new data.
    fn update_recovery(&mut self, at: i64, ack: u64) {
        let before = self.recovery;
        self.recovery = before.acknowledged(ack);
        let has_ended = before != Recovery::None && self.recovery == Recovery::None;
        if has_ended && matches!(before, Recovery::AfterTimeout { .. }) {
            self.anomalies.get_or_default().timeout_recovered = CompactOption::time(at);
        }
        if before.is_after_timeout() && !self.recovery.is_after_timeout() {
            self.anomalies.get_or_default().timeout_recovery_ended();
        }
        let max = self.flight.max;
        let round = self.rounds.acknowledged(ack, max);
        if let Some(anomalies) = self.anomalies.get_mut() {
            if let Some(flight) = round {
                anomalies.congestion.round(flight, anomalies.retransmissions.spurious.packets);
            }
            if has_ended {
                anomalies.congestion.recovered();
                self.rounds.restart(max);
            }
        }
    }

    /// Returns the number of data bytes among the newly acknowledged sequence space.
    fn count_acked(&mut self, context: &PacketContext, ack: u64, una: u64) -> u64 {
        let syn = self.numbering.syn_range();
        let syns = syn.end.min(ack).saturating_sub(syn.start.max(una));
        let fins = u64::from(self.numbering.fin.as_offset().is_some_and(|fin| una < fin && fin <= ack));
        self.numbering.fin_acked |= fins > 0;
        let octets = (ack - una).saturating_sub(syns);
        let data = octets - fins.min(octets);
        if data > 0 {
            self.initial_flight.is_complete = true;
            self.counts.acked_bytes += data;
            self.series.add(context.at, Counted::Acked, data);
        }
        data
    }

    fn measure_rtt(&mut self, context: &PacketContext, ack: u64, covered: &Covered) {
        let Some(last) = covered.last else { return };
        let once = !covered.ambiguous && last.end == ack;
        let sample = match (once, covered.echoed) {
            (true, _) => Some((last.first_at, Measured::BySegment)),
            (false, Some(at)) => Some((at, Measured::ByTimestamp)),
            (false, None) => None,
        };
        let Some((from, measured)) = sample else { return };
        self.rtt.add(context.at - from, measured);
        if let Some(round_trips) = &mut self.round_trips {
            round_trips.add_rtt(context.at - from);
        }
        if let Some(trace) = &mut self.trace {
            let seconds = (context.at - from).max(0) as f64 / 1e9;
            let timestamps = measured == Measured::ByTimestamp;
            trace.rtt.push(RttSample { at: context.at, seconds, timestamps });
        }
    }

    /// Counts how many segments an ACK covers, if it acknowledges only data that arrived in order.
    fn count_policy(
        &mut self,
        context: &PacketContext,
        packet: &Packet,
        octets: u64,
        covered: &Covered,
        last_ack: Option<i64>,
    ) {
        let (Some(first), Some(last)) = (covered.first, covered.last) else { return };
        let in_order = self.recovery == Recovery::None && self.dupacks == 0 && !self.flight.has_any_sacked();
        let is_clear = covered.holes.is_empty() && !covered.ambiguous && self.sizes.longest > 0;
        if !in_order || !is_clear || packet.seq_len() > 0 || packet.flags.contains(Flags::RST) {
            return;
        }
        let segment = self.path_segment();
        // The segment was sent after all other data had been acknowledged, and it is the newest segment.
        let is_alone = first.start == last.start
            && octets <= u64::from(segment)
            && !self.flight.is_outstanding()
            && last_ack.is_some_and(|at| at <= first.first_at);
        let took = context.at - first.first_at;
        let alone = is_alone.then(|| [took, self.rtt.min().unwrap_or(took)]);
        if let (Some([took, least]), Some(round_trips)) = (alone, &mut self.round_trips)
            && took - least >= WAITED
            && octets < u64::from(context.peer_mss.unwrap_or(DEFAULT_MSS)) / 2
        {
            round_trips.delayed_ack(context.at, took - least);
        }
        self.ack_counts.add(Acked { octets, segment, alone });
    }

    fn record_ack(&mut self, context: &PacketContext, packet: &Packet, ack: u64, duplicate: bool) {
        let sack = self
            .sack_blocks(packet)
            .map(|block| (self.numbering.shown(block.start), self.numbering.shown(block.end)));
        let seen = AckSeen {
            at: context.at,
            number: packet.number,
            ack: self.numbering.shown(ack),
            edge: self.numbering.shown(self.window.edge().unwrap_or(ack).max(ack)),
            duplicate,
            sack: sack.collect(),
        };
        if let Some(trace) = &mut self.trace {
            trace.acks.push(seen);
        }
    }
}
