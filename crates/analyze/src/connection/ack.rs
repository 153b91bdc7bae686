//! A packet of the data's receiver: what it acknowledges, and what that proves.

use std::ops::Range;

use airwire::segment::Flags;
use airwire::seq::Seq;

use super::compact::Maybe;
use super::direction::{Direction, Moment, Repairing, Scale};
use super::flight::Sent;
use super::series::What;
use crate::packet::Packet;
use crate::trace::{AckSeen, Proof, RttSample};

/// What nobody has seen being sent is acknowledged if the capture missed it; more than this is no ACK of this stream.
const UNSEEN: u64 = 1 << 26;
/// E-TCP's two bits (docs/wire-extensions.md).
const OB: Flags = Flags(0x800);
const DB: Flags = Flags(0x400);

/// What an ACK for new data covers.
#[derive(Default)]
struct Covered {
    first: Option<Sent>,
    last: Option<Sent>,
    /// Something was sent twice, or had been SACKed: the ACK waited for something else than `last`.
    held_back: bool,
    /// The first one of which a transmission has the timestamp that is echoed: when that left.
    echoed: Option<i64>,
    octets: u64,
}

/// When the newest copy left of what an ACK says is there.
struct Newest {
    now: i64,
    echo: Option<u32>,
    least: i64,
    left: i64,
}

impl Newest {
    fn new(now: &Moment, packet: &Packet, least: Option<i64>) -> Self {
        let echo = packet.options.timestamps.map(|timestamps| timestamps.ecr);
        Self { now: now.at, echo, least: least.unwrap_or(0), left: 0 }
    }

    /// RFC 8985 §6.2, step 2: of something sent twice it may be the first copy. As in Linux that is not asked of the
    /// timestamp, which with SACK is that of the last segment in order, unless it says that it is the second.
    fn take(&mut self, sent: &Sent) {
        let is_second = self.echo == Some(sent.last_tsval) && sent.first_tsval != sent.last_tsval;
        if sent.times == 1 || is_second || self.now - sent.last_at >= self.least {
            self.left = self.left.max(sent.last_at);
        }
    }
}

fn is_older(tsval: u32, than: u32) -> bool {
    (tsval.wrapping_sub(than) as i32) < 0
}

impl Direction {
    /// Returns whether new data were acknowledged.
    pub(super) fn acknowledged(&mut self, now: &Moment, packet: &Packet, seq: Seq) -> bool {
        self.begin(seq);
        let Some(ack) = self.offset(seq).filter(|ack| *ack <= self.flight.max + UNSEEN) else { return false };
        self.acks += 1;
        self.take_marks(packet);
        let una = self.flight.first_una(ack);
        let news = self.take_sacks(now, packet, ack, una);
        let duplicate = self.is_duplicate(packet, ack, una);
        self.take_window(packet, ack);
        let mut progress = false;
        if ack > una {
            progress = self.advance(now, packet, ack, una);
        } else if ack < una {
            self.trouble.made().acks.old += 1;
        } else {
            if duplicate {
                self.trouble.made().acks.duplicate += 1;
            }
            // RFC 6675 §2: with SACK, what counts is whether it says anything new.
            if duplicate || news && self.flight.is_outstanding() && packet.seq_len() == 0 {
                self.dupacks += 1;
            }
        }
        if ack >= una {
            self.last_ack = Maybe::time(now.at);
        }
        if self.trace.is_some() {
            self.record_ack(now, packet, ack, duplicate);
        }
        progress
    }

    fn take_marks(&mut self, packet: &Packet) {
        if packet.flags.contains(Flags::ECE) && !packet.flags.contains(Flags::SYN) {
            self.trouble.made().acks.ece += 1;
        }
        if packet.flags.intersects(OB.with(DB)) && !packet.flags.intersects(Flags::SYN.with(Flags::RST)) {
            let marks = self.marks.made();
            marks.ob += u64::from(packet.flags.contains(OB));
            marks.db += u64::from(packet.flags.contains(DB));
        }
        if let Some(report) = packet.options.loss_report {
            let marks = self.marks.made();
            marks.loss_reports += 1;
            marks.last_loss_report = Some(report.ratio());
        }
        if packet.options.reordered.is_some() {
            self.marks.made().reordering_alarm = packet.options.reordered;
        }
    }

    fn sack_blocks(&self, packet: &Packet) -> impl Iterator<Item = Range<u64>> {
        let blocks = packet.options.sack.as_slice().iter();
        blocks.filter_map(|(left, right)| Some(self.offset(*left)?..self.offset(*right)?))
    }

    /// Returns whether anything is SACKed for the first time.
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
        let acks = &mut self.trouble.made().acks;
        acks.with_sack += 1;
        acks.sack_blocks += count as u64;
        let mut news = false;
        let mut newest = Newest::new(now, packet, self.rtt.min());
        for (place, block) in blocks[..count].iter().enumerate() {
            // RFC 2883 §4: the first block, if it is acknowledged already or lies within the second.
            let within = |outer: &Range<u64>| outer.start <= block.start && block.end <= outer.end;
            if place == 0 && (block.end <= ack || count > 1 && within(&blocks[1])) {
                self.trouble.made().acks.dsacks += 1;
                self.take_dsack(block);
            } else if block.end > una && block.end <= self.flight.max && block.start < block.end {
                news |= self.flight.sack(block.start.max(una)..block.end, |sent| newest.take(sent));
            }
        }
        self.note_arrival(&newest);
        news
    }

    fn note_arrival(&mut self, newest: &Newest) {
        if let Some(trouble) = self.trouble.get_mut() {
            trouble.arrived = trouble.arrived.max(newest.left);
        }
    }

    /// The receiver had this twice: the last copy that was sent again, if there is one, was a mistake.
    fn take_dsack(&mut self, block: &Range<u64>) {
        let touches = |range: &Range<u64>| range.start < block.end && block.start < range.end;
        let resent = self.trouble.get().and_then(|trouble| {
            trouble.resent.iter().rposition(|resent| !resent.proven && touches(&resent.range))
        });
        if let Some(at) = resent {
            self.prove(at, Proof::Dsack);
        }
    }

    /// RFC 5681 §2; the answer to a probe of a closed window is none.
    fn is_duplicate(&self, packet: &Packet, ack: u64, una: u64) -> bool {
        ack == una
            && self.flight.is_outstanding()
            && packet.seq_len() == 0
            && !packet.flags.contains(Flags::RST)
            && packet.window > 0
            && self.window == Some(packet.window)
    }

    fn take_window(&mut self, packet: &Packet, ack: u64) {
        if packet.flags.contains(Flags::RST) || ack < self.una() {
            return;
        }
        let shift = match self.scale {
            // RFC 7323 §2.2: never on a SYN.
            Scale::Shift(shift) if !packet.flags.contains(Flags::SYN) => shift,
            _ => 0,
        };
        let window = u32::from(packet.window) << shift;
        let edge = ack + u64::from(window);
        if packet.window == 0 && self.window.is_some_and(|before| before > 0) {
            self.trouble.made().zero_windows += 1;
        }
        if self.edge.as_offset().is_some_and(|before| edge < before) {
            self.trouble.made().shrunk += 1;
        }
        self.max_receiver_window = self.max_receiver_window.max(window);
        let least = self.min_receiver_window.get_or_insert(window);
        *least = window.min(*least);
        self.window = Some(packet.window);
        self.edge = Maybe::offset(edge);
    }

    fn advance(&mut self, now: &Moment, packet: &Packet, ack: u64, una: u64) -> bool {
        let echo = packet.options.timestamps.map(|timestamps| timestamps.ecr);
        let syn = self.syn_range();
        let mut covered = Covered::default();
        let mut newest = Newest::new(now, packet, self.rtt.min());
        self.flight.acknowledge(ack, |sent| {
            if sent.end > syn.start && sent.start < syn.end {
                return;
            }
            if !sent.sacked {
                newest.take(sent);
            }
            covered.octets += sent.end - sent.start;
            covered.held_back |= sent.times > 1 || sent.sacked;
            if let (Some(echo), None) = (echo, covered.echoed) {
                covered.echoed = match (sent.first_tsval == echo, sent.last_tsval == echo) {
                    // One tick for two transmissions tells nothing.
                    (true, true) if sent.times == 1 => Some(sent.first_at),
                    (true, false) => Some(sent.first_at),
                    (false, true) => Some(sent.last_at),
                    _ => None,
                };
            }
            covered.first.get_or_insert(*sent);
            covered.last = Some(*sent);
        });
        self.note_arrival(&newest);
        self.measure(now, ack, &covered);
        if let (Some(first), Some(echo)) = (&covered.first, echo) {
            self.compare_timestamps(first, echo);
        }
        let data = self.count_acked(now, ack, una, covered.octets);
        self.dupacks = 0;
        self.sent_on_dupacks = false;
        self.advanced = [now.at, self.advanced[0]];
        self.repairing = match self.repairing {
            Repairing::Fast { recover, after_timeout, .. } if ack < recover => {
                Repairing::Fast { recover, partial: true, after_timeout }
            }
            Repairing::AfterTimeout { recover } if ack < recover => Repairing::AfterTimeout { recover },
            Repairing::AfterTimeout { .. } => {
                self.trouble.made().restarted = Some(now.at);
                Repairing::Nothing
            }
            _ => Repairing::Nothing,
        };
        let max = self.flight.max;
        self.rounds.acknowledged(ack, max);
        data > 0
    }

    /// Octets of data among what is acknowledged for the first time.
    fn count_acked(&mut self, now: &Moment, ack: u64, una: u64, seen: u64) -> u64 {
        let syn = self.syn_range();
        let syns = syn.end.min(ack).saturating_sub(syn.start.max(una));
        let fins = u64::from(self.fin.as_offset().is_some_and(|fin| una < fin && fin <= ack));
        self.fin_acked |= fins > 0;
        let octets = (ack - una).saturating_sub(syns);
        let partly = self.flight.newest().is_some();
        // What is acknowledged in part only was seen, too.
        if !partly && octets > seen {
            self.trouble.made().acked_unseen += octets - seen;
        }
        let data = octets - fins.min(octets);
        if data > 0 {
            self.beginning.over = true;
            self.acked_bytes += data;
            self.series.add(now.at, What::Acked, data);
        }
        data
    }

    fn measure(&mut self, now: &Moment, ack: u64, covered: &Covered) {
        let Some(last) = covered.last else { return };
        let once = !covered.held_back && last.end == ack;
        let sample = match (once, covered.echoed) {
            (true, _) => Some((last.first_at, false)),
            (false, Some(at)) => Some((at, true)),
            (false, None) => None,
        };
        let Some((from, timestamps)) = sample else { return };
        self.rtt.add(now.at - from, timestamps);
        if let Some(trace) = &mut self.trace {
            let seconds = (now.at - from).max(0) as f64 / 1e9;
            trace.rtt.push(RttSample { at: now.at, seconds, timestamps });
        }
    }

    /// RFC 3522 §3.2: the ACK echoes what the *first* segment that it acknowledges carried (RFC 7323 §4.3). If that
    /// is older than a copy sent again, the copy was not needed. Of later segments it says nothing.
    fn compare_timestamps(&mut self, first: &Sent, echo: u32) {
        if first.times < 2 || is_older(echo, first.first_tsval) {
            return;
        }
        let resent = self.trouble.get().into_iter().flat_map(|trouble| trouble.resent.iter().enumerate());
        let unneeded = resent.filter(|(_, resent)| {
            let same = resent.range.start < first.end && first.start < resent.range.end;
            same && resent.tsval.is_some_and(|tsval| is_older(echo, tsval))
        });
        let unneeded: Vec<_> = unneeded.map(|(at, _)| at).collect();
        for at in unneeded {
            self.prove(at, Proof::Timestamp);
        }
    }

    fn record_ack(&mut self, now: &Moment, packet: &Packet, ack: u64, duplicate: bool) {
        let sack = self.sack_blocks(packet).map(|block| (self.shown(block.start), self.shown(block.end)));
        let seen = AckSeen {
            at: now.at,
            number: packet.number,
            ack: self.shown(ack),
            edge: self.shown(self.edge.as_offset().unwrap_or(ack).max(ack)),
            duplicate,
            sack: sack.collect(),
        };
        if let Some(trace) = &mut self.trace {
            trace.acks.push(seen);
        }
    }
}
