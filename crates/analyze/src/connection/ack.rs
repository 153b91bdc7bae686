//! Processes packets of the data's receiver: the data that they acknowledge, and the conclusions from it.

use std::ops::Range;

use airwire::marks;
use airwire::segment::Flags;
use airwire::seq::Seq;

use super::ack_policy::Acked;
use super::anomalies::Unseen;
use super::compact::CompactOption;
use super::direction::{Direction, Moment, Repairing};
use super::flight::Sent;
use super::rtt::Measured;
use super::series::Counted;
use super::time_spent::Shows;
use crate::trace::{AckSeen, Proof, RttSample};
use aircaptures::packet::Packet;

/// Bytes beyond the captured data that an ACK may cover, because the capture may have missed them. An ACK for
/// more does not belong to this stream.
pub(super) const UNSEEN: u64 = 1 << 26;
/// The two bits of E-TCP (docs/reference/header-extensions.md).
const OB: Flags = Flags(marks::OB);
const DB: Flags = Flags(marks::DB);

/// The segments that an ACK covers completely.
#[derive(Default)]
struct Covered {
    first: Option<Sent>,
    last: Option<Sent>,
    /// Whether a segment was sent twice or had been SACKed, so that the ACK does not time `last` alone.
    held_back: bool,
    /// Send time of the transmission whose timestamp is echoed.
    echoed: Option<i64>,
    /// One past the last byte processed.
    next: u64,
    /// Ranges that the capture does not contain.
    holes: Vec<Range<u64>>,
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
struct Newest {
    now: i64,
    /// The timestamp that the ACK echoes.
    echo: Option<u32>,
    /// Minimum RTT so far, or 0 before the first sample.
    least_rtt: i64,
    left: i64,
}

impl Newest {
    fn new(now: &Moment, packet: &Packet, least_rtt: Option<i64>) -> Self {
        let echo = packet.options.timestamps.map(|timestamps| timestamps.ecr);
        Self { now: now.at, echo, least_rtt: least_rtt.unwrap_or(0), left: 0 }
    }

    /// Processes a segment that has arrived. RFC 8985 §6.2, step 2: the ACK of a retransmitted segment may be
    /// for the original transmission. As in Linux, an echoed timestamp counts only if it identifies the
    /// retransmission: with SACK, the echo is the timestamp of the last segment that arrived in order.
    fn take(&mut self, sent: &Sent) {
        let is_second = self.echo == Some(sent.last_tsval) && sent.first_tsval != sent.last_tsval;
        if sent.times == 1 || is_second || self.now - sent.last_at >= self.least_rtt {
            self.left = self.left.max(sent.last_at);
        }
    }
}

fn is_older(tsval: u32, than: u32) -> bool {
    (tsval.wrapping_sub(than) as i32) < 0
}

impl Direction {
    /// Processes a packet of the data's receiver, which acknowledges `seq`.
    pub(super) fn take_ack(&mut self, now: &Moment, packet: &Packet, seq: Seq) {
        let shows = self.take_ack_number(now, packet, seq);
        self.count_time(now, shows);
    }

    fn take_ack_number(&mut self, now: &Moment, packet: &Packet, seq: Seq) -> Shows {
        self.begin(seq);
        let Some(ack) = self.offset(seq).filter(|ack| *ack <= self.flight.max + UNSEEN) else {
            return Shows::Nothing;
        };
        self.counts.acks += 1;
        self.take_marks(packet);
        let una = self.flight.first_una(ack);
        let news = self.take_sacks(now, packet, ack, una);
        let duplicate = self.is_duplicate(packet, ack, una);
        self.take_window(packet, ack);
        let mut shows = Shows::Nothing;
        if ack > una {
            if self.advance(now, packet, ack, una) > 0 {
                shows = Shows::DataAcked;
            }
        } else if ack < una {
            self.anomalies.get_or_default().acks.old += 1;
        } else {
            if duplicate {
                self.anomalies.get_or_default().acks.duplicate += 1;
            }
            // RFC 6675 §2: with SACK, an ACK counts as duplicate if it contains new SACK information.
            if duplicate || news && self.flight.is_outstanding() && packet.seq_len() == 0 {
                self.dupacks += 1;
            }
        }
        if ack >= una {
            self.ack_times.last = CompactOption::time(now.at);
            self.ack_is_answered = false;
        }
        if self.trace.is_some() {
            self.record_ack(now, packet, ack, duplicate);
        }
        shows
    }

    fn take_marks(&mut self, packet: &Packet) {
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
    fn take_sacks(&mut self, now: &Moment, packet: &Packet, ack: u64, una: u64) -> bool {
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
        let mut news = false;
        let mut newest = Newest::new(now, packet, self.rtt.min());
        for (place, block) in blocks[..count].iter().enumerate() {
            // RFC 2883 §4: the first block is a D-SACK if it is below the ACK number or within the second
            // block.
            let within = |outer: &Range<u64>| outer.start <= block.start && block.end <= outer.end;
            if place == 0 && (block.end <= ack || count > 1 && within(&blocks[1])) {
                self.anomalies.get_or_default().acks.dsacks += 1;
                self.take_dsack(block);
            } else if block.end > una && block.end <= self.flight.max && block.start < block.end {
                news |= self.flight.sack(block.start.max(una)..block.end, |sent| newest.take(sent));
            }
        }
        self.note_arrival(now, &newest);
        news
    }

    fn note_arrival(&mut self, now: &Moment, newest: &Newest) {
        let Some(anomalies) = self.anomalies.get_mut() else { return };
        anomalies.newest_arrived = anomalies.newest_arrived.max(newest.left);
        // Segments of one burst may have the same send time. Only those below SACKed data were sent earlier.
        let oldest = self.flight.oldest().filter(|sent| self.flight.sacked_above(sent.start));
        let overtaken = oldest.map(|sent| sent.last_at).filter(|left| *left <= anomalies.newest_arrived);
        anomalies.oldest_overtaken = match (overtaken, anomalies.oldest_overtaken) {
            (Some(left), Some(known)) if known[0] == left => Some(known),
            (Some(left), _) => Some([left, now.at]),
            (None, _) => None,
        };
    }

    /// Processes a D-SACK: the last retransmission of this data, if there was one, was spurious.
    fn take_dsack(&mut self, block: &Range<u64>) {
        let touches = |range: &Range<u64>| range.start < block.end && block.start < range.end;
        let last = self.anomalies.get().and_then(|anomalies| {
            anomalies.recent.iter().rposition(|copy| !copy.proven && touches(&copy.range))
        });
        if let Some(at) = last {
            self.prove(at, Proof::Dsack);
        }
    }

    /// Returns whether the ACK is a duplicate (RFC 5681 §2). The reply to a zero-window probe is not a
    /// duplicate ACK.
    fn is_duplicate(&self, packet: &Packet, ack: u64, una: u64) -> bool {
        ack == una
            && self.flight.is_outstanding()
            && packet.seq_len() == 0
            && !packet.flags.contains(Flags::RST)
            && packet.window > 0
            && self.window.is_same_in(packet)
    }

    fn take_window(&mut self, packet: &Packet, ack: u64) {
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
    fn advance(&mut self, now: &Moment, packet: &Packet, ack: u64, una: u64) -> u64 {
        let echo = packet.options.timestamps.map(|timestamps| timestamps.ecr);
        let syn = self.numbering.syn_range();
        let mut covered = Covered { next: una.max(syn.end.min(ack)), ..Covered::default() };
        let mut newest = Newest::new(now, packet, self.rtt.min());
        let last_ack = self.ack_times.last.as_time();
        let part = self.flight.acknowledge(ack, |sent| {
            covered.reach(sent.start..sent.end);
            if sent.end > syn.start && sent.start < syn.end {
                return;
            }
            if !sent.sacked {
                newest.take(sent);
            }
            covered.held_back |= sent.times > 1 || sent.sacked;
            if let (Some(echo), None) = (echo, covered.echoed) {
                covered.echoed = match (sent.first_tsval == echo, sent.last_tsval == echo) {
                    // Two transmissions within one clock tick cannot be distinguished.
                    (true, true) if sent.times == 1 => Some(sent.first_at),
                    (true, false) => Some(sent.first_at),
                    (false, true) => Some(sent.last_at),
                    _ => None,
                };
            }
            covered.first.get_or_insert(*sent);
            covered.last = Some(*sent);
        });
        covered.reach(part);
        self.note_arrival(now, &newest);
        self.measure(now, ack, &covered);
        self.count_policy(now, packet, ack - una, &covered, last_ack);
        if let (Some(first), Some(echo)) = (&covered.first, echo) {
            self.compare_timestamps(first, echo);
        }
        for range in covered.holes {
            self.anomalies.get_or_default().miss(Unseen { range, at: now.at, echo });
        }
        let data = self.count_acked(now, ack, una);
        self.dupacks = 0;
        self.sent_on_dupacks = false;
        self.ack_times.advance(now.at);
        let was = self.repairing;
        self.repairing = match was {
            Repairing::Fast { recover, after_timeout, .. } if ack < recover => {
                Repairing::Fast { recover, partial: true, after_timeout }
            }
            Repairing::AfterTimeout { recover } if ack < recover => Repairing::AfterTimeout { recover },
            Repairing::AfterTimeout { .. } => {
                self.anomalies.get_or_default().timeout_repaired = Some(now.at);
                Repairing::Nothing
            }
            _ => Repairing::Nothing,
        };
        let max = self.flight.max;
        let round = self.rounds.acknowledged(ack, max);
        if let Some(anomalies) = self.anomalies.get_mut() {
            let spurious = anomalies.retransmissions.spurious.packets;
            if let Some(flight) = round {
                anomalies.congestion.round(flight, spurious);
            }
            if was != Repairing::Nothing && self.repairing == Repairing::Nothing {
                anomalies.congestion.repaired();
                self.rounds.restart(max);
            }
        }
        data
    }

    /// Returns the number of data bytes among the newly acknowledged sequence space.
    fn count_acked(&mut self, now: &Moment, ack: u64, una: u64) -> u64 {
        let syn = self.numbering.syn_range();
        let syns = syn.end.min(ack).saturating_sub(syn.start.max(una));
        let fins = u64::from(self.numbering.fin.as_offset().is_some_and(|fin| una < fin && fin <= ack));
        self.numbering.fin_acked |= fins > 0;
        let octets = (ack - una).saturating_sub(syns);
        let data = octets - fins.min(octets);
        if data > 0 {
            self.beginning.over = true;
            self.counts.acked_bytes += data;
            self.series.add(now.at, Counted::Acked, data);
        }
        data
    }

    fn measure(&mut self, now: &Moment, ack: u64, covered: &Covered) {
        let Some(last) = covered.last else { return };
        let once = !covered.held_back && last.end == ack;
        let sample = match (once, covered.echoed) {
            (true, _) => Some((last.first_at, Measured::BySegment)),
            (false, Some(at)) => Some((at, Measured::ByTimestamp)),
            (false, None) => None,
        };
        let Some((from, measured)) = sample else { return };
        self.rtt.add(now.at - from, measured);
        if let Some(trace) = &mut self.trace {
            let seconds = (now.at - from).max(0) as f64 / 1e9;
            let timestamps = measured == Measured::ByTimestamp;
            trace.rtt.push(RttSample { at: now.at, seconds, timestamps });
        }
    }

    /// Counts how many segments an ACK covers, if it acknowledges only data that arrived in order.
    fn count_policy(
        &mut self,
        now: &Moment,
        packet: &Packet,
        octets: u64,
        covered: &Covered,
        last_ack: Option<i64>,
    ) {
        let (Some(first), Some(last)) = (covered.first, covered.last) else { return };
        let in_order =
            self.repairing == Repairing::Nothing && self.dupacks == 0 && !self.flight.is_any_sacked();
        let whole = covered.holes.is_empty() && !covered.held_back && self.sizes.longest > 0;
        if !in_order || !whole || packet.seq_len() > 0 || packet.flags.contains(Flags::RST) {
            return;
        }
        let segment = self.path_segment(now.peer_mss);
        // The segment was sent after all other data had been acknowledged, and nothing was sent after it.
        let is_alone = first.start == last.start
            && octets <= u64::from(segment)
            && !self.flight.is_outstanding()
            && last_ack.is_some_and(|at| at <= first.first_at);
        let took = now.at - first.first_at;
        let alone = is_alone.then(|| [took, self.rtt.min().unwrap_or(took)]);
        self.ack_counts.take(Acked { octets, segment, alone });
    }

    /// Detects spurious retransmissions as in RFC 3522 §3.2. The ACK echoes the timestamp of the *first*
    /// segment that it acknowledges (RFC 7323 §4.3). If this timestamp is older than a retransmission of that
    /// segment, the retransmission was spurious. Nothing follows from it for later segments.
    fn compare_timestamps(&mut self, first: &Sent, echo: u32) {
        if first.times < 2 || is_older(echo, first.first_tsval) {
            return;
        }
        let recent =
            self.anomalies.get().into_iter().flat_map(|anomalies| anomalies.recent.iter().enumerate());
        let unneeded = recent.filter(|(_, copy)| {
            let same = copy.range.start < first.end && first.start < copy.range.end;
            same && copy.tsval.is_some_and(|tsval| is_older(echo, tsval))
        });
        let unneeded: Vec<_> = unneeded.map(|(at, _)| at).collect();
        for at in unneeded {
            self.prove(at, Proof::Timestamp);
        }
    }

    fn record_ack(&mut self, now: &Moment, packet: &Packet, ack: u64, duplicate: bool) {
        let sack = self
            .sack_blocks(packet)
            .map(|block| (self.numbering.shown(block.start), self.numbering.shown(block.end)));
        let seen = AckSeen {
            at: now.at,
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
