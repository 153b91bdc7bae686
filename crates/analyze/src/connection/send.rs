//! A packet of the data's sender: new, late, a copy, a probe, or sent again; and why.

use std::ops::Range;

use airwire::segment::Flags;

use super::anomalies::{Begins, Resent};
use super::compact::Maybe;
use super::direction::{Direction, Moment, Repairing};
use super::flight::Sent;
use super::series::What;
use super::trigger::{Cause, Why};
use crate::packet::Packet;
use crate::trace::{Fate, Idle, Sending, SentSegment};

/// Packets in a row outside the window, after which it is the window that is believed to be wrong.
const STRAYS: u8 = 8;
/// Reordering within a machine or a capture; Wireshark takes the same.
const REORDERED_WITHIN: i64 = 3_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    New,
    /// Sent before others that came past earlier.
    Late,
    /// By the network.
    Copy,
    WindowProbe,
    KeepAlive,
    Again {
        /// The capture has no earlier copy.
        unseen: bool,
    },
}

impl Direction {
    /// Returns whether the silence before the packet was a wait for a timeout.
    pub(super) fn sent(&mut self, now: &Moment, packet: &Packet) -> bool {
        self.mark(packet);
        let syn = packet.flags.contains(Flags::SYN);
        if syn {
            self.syn(packet.seq);
            self.syn_mss = packet.options.mss;
        } else {
            self.begin(packet.seq);
        }
        let Some(start) = self.offset(packet.seq).filter(|start| self.is_plausible(*start, packet)) else {
            return false;
        };
        let range = start..start + packet.seq_len();
        if range.is_empty() {
            self.probed_without_data(packet, start);
            return false;
        }
        if packet.len > 0 {
            self.data_packets += 1;
            self.sent_bytes += u64::from(packet.len);
            self.series.add(now.at, What::Sent, u64::from(packet.len));
            self.clocks.start(now.at);
            self.longest = self.longest.max(packet.len);
        }
        if packet.flags.contains(Flags::FIN) {
            self.fin = Maybe::offset(range.end);
        }
        let kind = self.kind(now, packet, &range);
        let first = self.flight.first_overlapping(&range);
        let why = match kind {
            Kind::Again { .. } if syn => Some(Why { cause: Cause::Timeout, begins: Begins::Nothing }),
            Kind::Again { .. } => Some(self.why(now, &range, first)),
            _ => None,
        };
        let waited = why.is_some_and(|why| why.begins == Begins::Timeout);
        let index = self.record_segment(now, packet, &range, kind, why);
        if waited && let Some(trace) = &mut self.trace {
            trace.idle.push(Idle { from: now.at - now.silence, to: now.at });
        }
        match kind {
            Kind::Again { .. } if syn => self.trouble.made().again.syns += 1,
            Kind::Again { unseen } => {
                let trouble = self.trouble.made();
                trouble.again.lost_before_capture += u64::from(unseen);
                trouble.arrivals.duplicate += u64::from(!unseen);
                self.sent_again(packet, &range, first, why.expect("it was asked above"), index);
            }
            Kind::New => self.sent_new(now, packet, &range),
            Kind::Late => self.trouble.made().arrivals.out_of_order += 1,
            Kind::Copy => self.trouble.made().arrivals.duplicate += 1,
            Kind::WindowProbe => self.trouble.made().again.window_probes += 1,
            Kind::KeepAlive => self.trouble.made().again.keep_alives += 1,
        }
        if !matches!(kind, Kind::Copy | Kind::KeepAlive) {
            self.put_in_flight(now, packet, range, kind);
        }
        self.learn_ids(packet);
        waited
    }

    /// Garbage, or a packet of another connection on these ports, must not move the window.
    fn is_plausible(&mut self, start: u64, packet: &Packet) -> bool {
        let within = match (self.room(), self.edge.as_offset()) {
            (Some(_), Some(edge)) => start <= edge.max(self.flight.max) + (1 << 20),
            _ => true,
        };
        self.strays = if within { 0 } else { self.strays + 1 };
        if self.strays == STRAYS {
            self.start_over(start);
            return true;
        }
        within && !packet.flags.contains(Flags::RST)
    }

    /// The capture has missed so much that nothing known holds.
    pub(super) fn start_over(&mut self, at: u64) {
        self.flight = Default::default();
        self.flight.begin(at);
        (self.repairing, self.dupacks, self.strays, self.edge) = (Repairing::Nothing, 0, 0, Maybe::default());
        if let Some(trouble) = self.trouble.get_mut() {
            trouble.resent.clear();
        }
    }

    /// Linux asks with an old number and no octet.
    fn probed_without_data(&mut self, packet: &Packet, start: u64) {
        let known = self.flight.una().is_some() && !packet.flags.contains(Flags::RST);
        if known && start + 1 == self.una() {
            if self.window_is_closed() {
                self.trouble.made().again.window_probes += 1;
            } else if start + 1 == self.flight.max {
                self.trouble.made().again.keep_alives += 1;
            }
        }
    }

    fn kind(&mut self, now: &Moment, packet: &Packet, range: &Range<u64>) -> Kind {
        let una = self.una();
        let closed = self.window_is_closed();
        let asks = packet.len <= 1 && !packet.flags.intersects(Flags(0x003 | 0x008));
        if asks && range.end == una && una == self.flight.max {
            return if closed { Kind::WindowProbe } else { Kind::KeepAlive };
        }
        if closed
            && packet.len > 0
            && self.edge.as_offset().is_some_and(|edge| edge <= range.start)
            && range.end > una
        {
            return Kind::WindowProbe;
        }
        if range.start >= self.flight.max {
            return Kind::New;
        }
        let tsval = packet.options.timestamps.map_or(0, |timestamps| timestamps.val);
        let (mut any, mut seen, mut copy) = (false, false, false);
        for sent in self.flight.overlapping(range) {
            any = true;
            seen |= !sent.probe;
            copy |= packet.ip_id.is_some_and(|id| id != 0)
                && sent.ip_id == packet.ip_id
                && sent.last_tsval == tsval
                && (sent.start, sent.end) == (range.start, range.end);
        }
        if copy {
            Kind::Copy
        } else if any && !seen {
            // The octet of a probe that the receiver had no room for.
            Kind::New
        } else if !any && range.start >= una {
            if self.is_late(now, packet, range) { Kind::Late } else { Kind::Again { unseen: true } }
        } else {
            Kind::Again { unseen: false }
        }
    }

    /// What fills a hole was either overtaken, or sent again because it was lost before it came here. The sender's
    /// clock and its count of packets tell; else a repair takes a round trip.
    fn is_late(&self, now: &Moment, packet: &Packet, range: &Range<u64>) -> bool {
        let Some(newest) = self.flight.newest() else { return false };
        let tsval = packet.options.timestamps.map(|timestamps| timestamps.val);
        match tsval.map(|tsval| tsval.wrapping_sub(newest.first_tsval) as i32) {
            Some(later) if later > 0 => return false,
            Some(later) if later < 0 => return true,
            _ => {}
        }
        if let (true, Some(id), Some(last)) = (self.ids_count > 3, packet.ip_id, newest.ip_id) {
            return (id.wrapping_sub(last) as i16) < 0;
        }
        let above = self.flight.first_overlapping(&(range.end..u64::MAX));
        let since = now.at - above.unwrap_or(*newest).first_at;
        since < now.round_trip.unwrap_or(0).max(REORDERED_WITHIN)
    }

    fn learn_ids(&mut self, packet: &Packet) {
        if let (Some(id), Some(last)) = (packet.ip_id, self.last_id) {
            let step = id.wrapping_sub(last);
            self.ids_count = if (1..=64).contains(&step) {
                (self.ids_count + 1).min(16)
            } else {
                (self.ids_count - 2).max(-16)
            };
        }
        self.last_id = packet.ip_id;
    }

    fn sent_again(
        &mut self,
        packet: &Packet,
        range: &Range<u64>,
        first: Option<Sent>,
        why: Why,
        index: usize,
    ) {
        self.learn_from(range, first, why);
        let room = self.room().is_some_and(|room| room >= u64::from(self.segment()));
        let trouble = self.trouble.made();
        let again = &mut trouble.again;
        again.packets += 1;
        again.bytes += u64::from(packet.len);
        match why.cause {
            Cause::Fast => again.fast += 1,
            Cause::Timeout => again.timeout += 1,
            Cause::Tail => again.tail += 1,
            Cause::Unexplained => again.unexplained += 1,
        }
        match why.begins {
            Begins::Nothing => {}
            Begins::FastRetransmit => {
                again.fast_retransmits += 1;
                if self.dupacks >= 3 && self.repairing == Repairing::Nothing && !self.sent_on_dupacks {
                    trouble.guess.limited_transmit[1] += u32::from(room);
                }
                let after_timeout = matches!(
                    self.repairing,
                    Repairing::AfterTimeout { .. } | Repairing::Fast { after_timeout: true, .. }
                );
                self.repairing = Repairing::Fast { recover: self.flight.max, partial: false, after_timeout };
            }
            Begins::Timeout => {
                again.timeouts += 1;
                again.timeouts_by_dupacks[(self.dupacks as usize).min(3)] += 1;
                let failed = self.dupacks > 0 && self.dupacks + 1 == self.flight.passed_segments();
                again.failed_dupack += u64::from(failed);
                self.repairing = Repairing::AfterTimeout { recover: self.flight.max };
                self.flight.rewind(range.start);
                self.dupacks = 0;
            }
        }
        if why.begins != Begins::Nothing {
            let flight = self.flight_bytes();
            self.rounds.reduced(flight);
        }
        if let Repairing::Fast { partial, .. } = &mut self.repairing {
            *partial = false;
        }
        let tsval = packet.options.timestamps.map(|timestamps| timestamps.val);
        self.trouble.made().remember(Resent {
            range: range.clone(),
            tsval,
            begins: why.begins,
            proven: false,
            index,
        });
    }

    /// What the retransmission tells about the sender, before it changes anything.
    fn learn_from(&mut self, range: &Range<u64>, first: Option<Sent>, why: Why) {
        let with_sack = self.flight.is_any_sacked();
        let guess = &mut self.trouble.made().guess;
        match (self.repairing, why.begins) {
            (Repairing::Fast { partial: true, .. }, Begins::FastRetransmit | Begins::Timeout) => {
                guess.reno += 1;
            }
            (Repairing::Fast { partial, after_timeout: false, .. }, Begins::Nothing)
                if first.is_none_or(|sent| sent.times <= 1) =>
            {
                if range.start > self.flight.una().unwrap_or(0) {
                    let count = if with_sack { &mut guess.sack } else { &mut guess.tahoe };
                    *count += 1;
                } else if partial && !with_sack && self.dupacks < 3 {
                    guess.newreno += 1;
                }
            }
            (Repairing::AfterTimeout { .. }, Begins::Nothing) => {
                let next = self.flight.pass_next;
                if with_sack {
                    guess.went_back += u32::from(self.flight.has_sacked(range));
                    let left_out = range.start > next && self.flight.has_sacked(&(next..range.start));
                    guess.left_out += u32::from(left_out);
                } else {
                    guess.went_back += u32::from(range.start == next);
                }
            }
            _ => {}
        }
    }

    fn sent_new(&mut self, now: &Moment, packet: &Packet, range: &Range<u64>) {
        if self.dupacks > 0 && self.repairing == Repairing::Nothing {
            self.sent_on_dupacks = true;
            let limited = self.dupacks <= 2 && self.is_prompted(now) && !packet.flags.contains(Flags::FIN);
            self.trouble.made().guess.limited_transmit[0] += u32::from(limited);
        }
        if self.repairing != Repairing::Nothing && self.flight.pass_next < range.start {
            let skipped = self.flight.pass_next..range.start;
            self.trouble.made().guess.left_out += u32::from(self.flight.has_sacked(&skipped));
        }
        if packet.len > 0 {
            self.last_new_len = packet.len;
            if !self.beginning.over {
                self.beginning.bytes += u64::from(packet.len);
                self.beginning.segments += 1;
            }
        }
    }

    fn put_in_flight(&mut self, now: &Moment, packet: &Packet, range: Range<u64>, kind: Kind) {
        let tsval = packet.options.timestamps.map_or(0, |timestamps| timestamps.val);
        let pass = self.flight.pass;
        let probe = kind == Kind::WindowProbe;
        for sent in self.flight.overlapping(&range) {
            if sent.probe {
                (sent.probe, sent.first_at, sent.first_tsval, sent.times) = (probe, now.at, tsval, 0);
            }
            sent.times += 1;
            (sent.last_at, sent.last_tsval, sent.pass, sent.ip_id) = (now.at, tsval, pass, packet.ip_id);
        }
        self.flight.pass_next = self.flight.pass_next.max(range.end);
        let start = range.start.max(self.una());
        if start < range.end {
            self.flight.insert(Sent {
                start,
                end: range.end,
                first_at: now.at,
                last_at: now.at,
                first_tsval: tsval,
                last_tsval: tsval,
                // Another transmission came before, somewhere.
                times: if kind == (Kind::Again { unseen: true }) { 2 } else { 1 },
                pass,
                ip_id: packet.ip_id,
                sacked: false,
                probe,
            });
        }
    }

    fn record_segment(
        &mut self,
        now: &Moment,
        packet: &Packet,
        range: &Range<u64>,
        kind: Kind,
        why: Option<Why>,
    ) -> usize {
        if self.trace.is_none() {
            return 0;
        }
        let sending = match (kind, why) {
            (Kind::WindowProbe | Kind::KeepAlive, _) => Sending::Probe,
            (_, Some(Why { cause: Cause::Fast, .. })) => Sending::Fast,
            (_, Some(Why { cause: Cause::Timeout, .. })) => Sending::Timeout,
            (_, Some(Why { cause: Cause::Tail, .. })) => Sending::Tail,
            (_, Some(Why { cause: Cause::Unexplained, .. })) => Sending::Unexplained,
            (_, None) => Sending::New,
        };
        let again = u32::from(self.flight.first_overlapping(range).is_some());
        self.record(SentSegment {
            at: now.at,
            number: packet.number,
            start: self.shown(range.start),
            end: self.shown(range.end),
            sending,
            dupacks: self.dupacks,
            in_flight: self.flight.passed_segments().saturating_sub(again),
            fate: Fate::Unknown,
        })
    }
}
