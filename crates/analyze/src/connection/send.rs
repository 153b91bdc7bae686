//! Classifies the packets of the data's sender: new, reordered, copied, probe or retransmission, with the
//! reason.

use std::ops::Range;

use airwire::segment::Flags;

use super::ack::UNSEEN;
use super::anomalies::{Begins, Retransmission};
use super::compact::CompactOption;
use super::congestion::Congestion;
use super::direction::{Direction, Moment, Repairing};
use super::flight::Sent;
use super::series::Counted;
use super::time_spent::Shows;
use super::trigger::{Explanation, Trigger};
use crate::trace::{Fate, Idle, Proof, Sending, SentSegment};
use aircaptures::packet::Packet;

/// Number of consecutive packets outside the known window after which the known window is assumed to be
/// wrong.
const STRAYS: u8 = 8;
/// Nanoseconds within which a host or a capture may reorder packets. Wireshark uses the same value.
const REORDERED_WITHIN: i64 = 3_000_000;

/// Bytes by which a packet may exceed the known window.
pub(super) const AROUND: u64 = 1 << 20;
/// Timestamp clock ticks by which the echo in an ACK may be older than a segment that it covers, because a
/// delayed ACK echoes the first of two segments.
const DELAYED_ACK: i32 = 50;
/// Nanoseconds for which the network may delay a copy. A later packet may be a retransmission of a sender
/// that uses the same identification for all packets.
const LATE_COPY: i64 = 500_000_000;
/// Nanoseconds. Timers for zero-window probes are not shorter.
const PROBE_AFTER: i64 = 100_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketKind {
    New,
    /// Sent before packets that passed the capture point earlier.
    Late,
    /// Duplicated by the network.
    Copy,
    WindowProbe,
    KeepAlive,
    Again {
        /// Whether the capture does not contain an earlier copy.
        unseen: bool,
    },
}

impl Direction {
    /// Processes a packet of the data's sender.
    pub(super) fn take_packet(&mut self, now: &Moment, packet: &Packet) {
        let shows = self.take_segment(now, packet);
        self.ack_is_answered = true;
        self.count_time(now, shows);
    }

    fn take_segment(&mut self, now: &Moment, packet: &Packet) -> Shows {
        self.count_marks(packet);
        let syn = packet.flags.contains(Flags::SYN);
        if syn {
            self.syn(packet.seq, packet.options.mss);
        } else if !packet.flags.contains(Flags::RST) {
            // The sequence number of an RST is copied from the ACK number of another packet.
            self.begin(packet.seq);
        }
        let Some(start) = self.offset(packet.seq).filter(|start| self.is_plausible(*start, packet)) else {
            return Shows::Nothing;
        };
        let range = start..start + packet.seq_len();
        if range.is_empty() {
            self.probed_without_data(packet, start);
            self.note_unseen(packet, start);
            return Shows::Nothing;
        }
        if packet.len > 0 {
            self.counts.data_packets += 1;
            self.counts.sent_bytes += u64::from(packet.len);
            self.series.add(now.at, Counted::Sent, u64::from(packet.len));
            self.time_spent.start(now.at);
            self.sizes.longest = self.sizes.longest.max(packet.len);
        }
        if packet.flags.contains(Flags::FIN) {
            self.numbering.fin = CompactOption::offset(range.end);
        }
        let kind = self.kind(now, packet, &range);
        let is_again = matches!(kind, PacketKind::Again { .. });
        let first = if is_again { self.flight.first_overlapping(&range) } else { None };
        let why = match kind {
            PacketKind::Again { .. } if syn => {
                Some(Explanation { trigger: Trigger::Timeout, begins: Begins::Nothing })
            }
            PacketKind::Again { .. } => Some(self.explain(now, &range, first)),
            _ => None,
        };
        let waited = why.is_some_and(|why| why.begins == Begins::Timeout);
        let index = self.record_segment(now, packet, &range, kind, why);
        if waited && let Some(trace) = &mut self.trace {
            trace.idle.push(Idle { from: now.at - now.silence, to: now.at });
        }
        match kind {
            PacketKind::Again { .. } if syn => self.anomalies.get_or_default().retransmissions.syns += 1,
            PacketKind::Again { unseen } => {
                let anomalies = self.anomalies.get_or_default();
                anomalies.retransmissions.lost_before_capture += u64::from(unseen);
                anomalies.arrivals.duplicate += u64::from(!unseen);
                self.sent_again(packet, &range, first, why.expect("it was explained above"), index);
            }
            PacketKind::New => self.sent_new(now, packet, &range),
            PacketKind::Late => {
                let anomalies = self.anomalies.get_or_default();
                anomalies.arrivals.out_of_order += 1;
                anomalies.find(&range);
            }
            PacketKind::Copy => self.anomalies.get_or_default().arrivals.duplicate += 1,
            PacketKind::WindowProbe => self.anomalies.get_or_default().retransmissions.window_probes += 1,
            PacketKind::KeepAlive => self.anomalies.get_or_default().retransmissions.keep_alives += 1,
        }
        if !matches!(kind, PacketKind::Copy | PacketKind::KeepAlive) {
            self.put_in_flight(now, packet, range, kind);
        }
        if kind == PacketKind::New {
            self.look_for_a_probe(now, packet.len);
        }
        self.ip_ids.learn(packet.ip_id);
        if waited { Shows::TimerFired } else { Shows::Nothing }
    }

    /// Returns whether the packet may belong to this connection. Garbage and packets of other connections on
    /// the same ports must not move the window.
    fn is_plausible(&mut self, start: u64, packet: &Packet) -> bool {
        let within = match (self.room(), self.window.edge()) {
            (Some(_), Some(edge)) => start <= edge.max(self.flight.max) + AROUND,
            _ => true,
        };
        // A retransmission is not further back than the largest window in use.
        let oldest = self.flight.lowest().saturating_sub(UNSEEN.max(u64::from(self.window.most())));
        let within = within && start + packet.seq_len() >= oldest;
        let strays = &mut self.numbering.strays;
        *strays = if within { 0 } else { *strays + 1 };
        if *strays == STRAYS {
            self.start_over(start);
            return true;
        }
        within && !packet.flags.contains(Flags::RST)
    }

    /// Discards the state, because it is invalid after the capture has missed many packets.
    pub(super) fn start_over(&mut self, at: u64) {
        self.flight = Default::default();
        self.flight.begin(at);
        (self.repairing, self.dupacks, self.numbering.strays) = (Repairing::Nothing, 0, 0);
        self.window.forget_edge();
        if let Some(anomalies) = self.anomalies.get_mut() {
            anomalies.recent.clear();
        }
    }

    /// Counts a probe without data. Linux sends probes with an old sequence number and without data.
    fn probed_without_data(&mut self, packet: &Packet, start: u64) {
        let known = self.flight.una().is_some() && !packet.flags.contains(Flags::RST);
        if known && start + 1 == self.una() {
            if self.window.is_closed() {
                self.anomalies.get_or_default().retransmissions.window_probes += 1;
            } else if start + 1 == self.flight.max {
                self.anomalies.get_or_default().retransmissions.keep_alives += 1;
            }
        }
    }

    /// Records that the sender has sent everything up to `start`, even if the capture does not contain it.
    fn note_unseen(&mut self, packet: &Packet, start: u64) {
        if !packet.flags.contains(Flags::RST) && start > self.flight.max && start <= self.flight.max + AROUND
        {
            self.flight.reach(start);
        }
    }

    /// Returns whether the packet was sent before its ACK, although the ACK is earlier in the capture.
    /// Captures do not always keep the order between the directions.
    fn follows_its_ack(&self, now: &Moment, packet: &Packet, range: &Range<u64>) -> bool {
        let Some(missed) = self.anomalies.get().and_then(|anomalies| anomalies.missed(range)) else {
            return false;
        };
        let tsval = packet.options.timestamps.map(|timestamps| timestamps.val);
        let later = tsval.zip(missed.echo).map(|(tsval, echo)| tsval.wrapping_sub(echo) as i32);
        let at_once = now.at - missed.at <= REORDERED_WITHIN;
        later.is_some_and(|later| later <= 0) || at_once && later.is_none_or(|later| later <= DELAYED_ACK)
    }

    fn kind(&mut self, now: &Moment, packet: &Packet, range: &Range<u64>) -> PacketKind {
        let una = self.una();
        let closed = self.window.is_closed();
        let asks = packet.len <= 1 && !packet.flags.intersects(Flags(0x003 | 0x008));
        if asks && range.end == una && una == self.flight.max {
            return if closed { PacketKind::WindowProbe } else { PacketKind::KeepAlive };
        }
        // A zero-window probe is sent when a timer expires (RFC 9293 §3.8.6.1). A full segment that directly
        // follows another packet is data from a sender that ignores the closed window, or has not learned
        // about it yet.
        let by_timer = packet.len == 1 || now.silence >= PROBE_AFTER;
        if closed && packet.len > 0 && by_timer && range.start == una && self.window.edge() == Some(una) {
            return PacketKind::WindowProbe;
        }
        if range.start >= self.flight.max {
            return PacketKind::New;
        }
        if range.end <= una && self.follows_its_ack(now, packet, range) {
            return PacketKind::Late;
        }
        let tsval = packet.options.timestamps.map_or(0, |timestamps| timestamps.val);
        let (mut any, mut seen, mut copy) = (false, false, false);
        for sent in self.flight.overlapping(range) {
            any = true;
            seen |= !sent.probe;
            copy |= packet.ip_id.is_some_and(|id| id != 0)
                && now.at - sent.last_at <= LATE_COPY
                && sent.ip_id == packet.ip_id
                && sent.last_tsval == tsval
                && (sent.start, sent.end) == (range.start, range.end);
        }
        if copy {
            PacketKind::Copy
        } else if any && !seen {
            // The data was sent before as a window probe, for which the receiver did not have space.
            PacketKind::New
        } else if !any && range.start >= una {
            if self.is_late(now, packet, range) {
                PacketKind::Late
            } else {
                PacketKind::Again { unseen: true }
            }
        } else {
            PacketKind::Again { unseen: false }
        }
    }

    /// Returns whether a packet that fills a hole was reordered. Otherwise it is a retransmission of a packet
    /// that was lost before the capture point. Timestamps or IP identifications decide it. Without them, a
    /// packet that arrives at least a round trip later is a retransmission.
    fn is_late(&self, now: &Moment, packet: &Packet, range: &Range<u64>) -> bool {
        let Some(newest) = self.flight.newest() else { return false };
        let tsval = packet.options.timestamps.map(|timestamps| timestamps.val);
        match tsval.map(|tsval| tsval.wrapping_sub(newest.first_tsval) as i32) {
            Some(later) if later > 0 => return false,
            Some(later) if later < 0 => return true,
            _ => {}
        }
        if let Some(is_before) = self.ip_ids.is_before(packet.ip_id, newest.ip_id) {
            return is_before;
        }
        let above = self.flight.first_overlapping(&(range.end..u64::MAX));
        let since = now.at - above.unwrap_or(*newest).first_at;
        let asked_for = range.start <= self.una() && self.dupacks >= 3;
        if asked_for && since >= now.sender_replies {
            return false;
        }
        since < now.round_trip.unwrap_or(0).max(REORDERED_WITHIN)
    }

    fn sent_again(
        &mut self,
        packet: &Packet,
        range: &Range<u64>,
        first: Option<Sent>,
        why: Explanation,
        index: usize,
    ) {
        self.learn_from(range, first, why);
        let room = self.room().is_some_and(|room| room >= u64::from(self.segment()));
        let anomalies = self.anomalies.get_or_default();
        let counts = &mut anomalies.retransmissions;
        counts.packets += 1;
        counts.bytes += u64::from(packet.len);
        match why.trigger {
            Trigger::Fast => counts.fast += 1,
            Trigger::Timeout => counts.timeout += 1,
            Trigger::Tail => counts.tail += 1,
            Trigger::Unexplained => counts.unexplained += 1,
        }
        match why.begins {
            Begins::Nothing => {}
            Begins::FastRetransmit => {
                counts.fast_retransmits += 1;
                if self.dupacks >= 3 && self.repairing == Repairing::Nothing && !self.sent_on_dupacks {
                    anomalies.guess.no_limited_transmit += u32::from(room);
                }
                let after_timeout = matches!(
                    self.repairing,
                    Repairing::AfterTimeout { .. } | Repairing::Fast { after_timeout: true, .. }
                );
                self.repairing = Repairing::Fast { recover: self.flight.max, partial: false, after_timeout };
            }
            Begins::Timeout => {
                counts.timeouts += 1;
                counts.timeouts_by_dupacks[(self.dupacks as usize).min(3)] += 1;
                let failed = self.dupacks > 0 && self.dupacks + 1 == self.flight.passed_segments();
                counts.failed_dupack += u64::from(failed);
                self.repairing = Repairing::AfterTimeout { recover: self.flight.max };
                self.flight.rewind(range.start);
                self.dupacks = 0;
            }
        }
        if why.begins != Begins::Nothing {
            let window = self.rounds.window();
            let anomalies = self.anomalies.get_or_default();
            match why.begins {
                Begins::FastRetransmit => {
                    let spurious = anomalies.retransmissions.spurious.packets;
                    anomalies.congestion.lost(window, spurious);
                }
                _ => anomalies.congestion.interrupted(),
            }
            let flight = self.flight_bytes();
            self.rounds.reduced(flight);
        }
        if let Repairing::Fast { partial, .. } = &mut self.repairing {
            *partial = false;
        }
        let tsval = packet.options.timestamps.map(|timestamps| timestamps.val);
        self.anomalies.get_or_default().remember(Retransmission {
            range: range.clone(),
            tsval,
            begins: why.begins,
            proven: false,
            index,
        });
        if range.end <= self.una()
            && let Some(last) = self.anomalies.get_or_default().recent.len().checked_sub(1)
        {
            self.prove(last, Proof::Acked);
        }
    }

    /// Records what the retransmission shows about the sender. It must be called before the state is updated.
    fn learn_from(&mut self, range: &Range<u64>, first: Option<Sent>, why: Explanation) {
        let with_sack = self.flight.is_any_sacked();
        let in_pass = first.is_some_and(|sent| sent.times > 1 && sent.pass == self.flight.pass);
        if with_sack && in_pass && why.trigger == Trigger::Fast {
            self.anomalies.get_or_default().guess.resent_copies += 1;
        }
        let guess = &mut self.anomalies.get_or_default().guess;
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
            self.anomalies.get_or_default().guess.limited_transmit += u32::from(limited);
        }
        if self.repairing != Repairing::Nothing && self.flight.pass_next < range.start {
            let skipped = self.flight.pass_next..range.start;
            self.anomalies.get_or_default().guess.left_out += u32::from(self.flight.has_sacked(&skipped));
        }
        if packet.len > 0 {
            self.sizes.last_new = packet.len;
            if !self.beginning.over {
                self.beginning.bytes += u64::from(packet.len);
                self.beginning.segments += 1;
            }
        }
    }

    /// Records a new segment that is sent while little data is in flight, as in BBR's ProbeRTT.
    fn look_for_a_probe(&mut self, now: &Moment, len: u32) {
        let segment = self.path_segment(now.peer_mss);
        if len < segment || self.repairing != Repairing::Nothing {
            return;
        }
        let (flight, round_trip) = (self.flight_bytes(), self.rtt.min().unwrap_or(0));
        let Some(window) = self.rounds.window() else { return };
        // Most connections never reach this state and do not need memory for it.
        if self.anomalies.get().is_some() || Congestion::may_probe(flight, window, segment) {
            let congestion = &mut self.anomalies.get_or_default().congestion;
            congestion.sent(now.at, flight, window, segment, round_trip);
        }
    }

    fn put_in_flight(&mut self, now: &Moment, packet: &Packet, range: Range<u64>, kind: PacketKind) {
        let tsval = packet.options.timestamps.map_or(0, |timestamps| timestamps.val);
        let pass = self.flight.pass;
        let probe = kind == PacketKind::WindowProbe;
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
                // An earlier copy was lost before the capture point.
                times: if kind == (PacketKind::Again { unseen: true }) { 2 } else { 1 },
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
        kind: PacketKind,
        why: Option<Explanation>,
    ) -> usize {
        if self.trace.is_none() {
            return 0;
        }
        let sending = match (kind, why) {
            (PacketKind::WindowProbe | PacketKind::KeepAlive, _) => Sending::Probe,
            (_, Some(Explanation { trigger: Trigger::Fast, .. })) => Sending::Fast,
            (_, Some(Explanation { trigger: Trigger::Timeout, .. })) => Sending::Timeout,
            (_, Some(Explanation { trigger: Trigger::Tail, .. })) => Sending::Tail,
            (_, Some(Explanation { trigger: Trigger::Unexplained, .. })) => Sending::Unexplained,
            (_, None) => Sending::New,
        };
        let again = u32::from(self.flight.first_overlapping(range).is_some());
        self.record(SentSegment {
            at: now.at,
            number: packet.number,
            start: self.numbering.shown(range.start),
            end: self.numbering.shown(range.end),
            sending,
            dupacks: self.dupacks,
            in_flight: self.flight.passed_segments().saturating_sub(again),
            fate: Fate::Unknown,
        })
    }
}
