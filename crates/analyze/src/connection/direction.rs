//! State of one direction: the data that one end sends, and the ACKs for it, while the data is in flight.
//!
//! `send` processes the packets of the data's sender, and `ack` processes the packets of the other end.

use airwire::segment::{Ecn, Flags};
use airwire::seq::Seq;

use super::ack_policy::AckCounts;
use super::anomalies::Anomalies;
use super::compact::{ALLOCATOR_OVERHEAD, CompactOption, OnDemand};
use super::findings::{
    AckFindings, CaptureAt, CongestionFindings, DirectionFindings, Marks, RttOf, WindowFindings,
};
use super::flight::Flight;
use super::guess::{self, Beginning, Rounds};
use super::numbering::{BASE, Numbering};
use super::receiver_window::{ReceiverWindow, Scale};
use super::rtt::Rtt;
use super::series::Series;
use super::time_spent::{Shows, SpentOn, TimeSpent};
use crate::trace::{Fate, Offset, Proof, SentSegment, Trace, WindowPoint};
use aircaptures::packet::Packet;

/// Information about a packet that the packet itself does not contain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Nanoseconds since the connection's first packet.
    pub(super) at: i64,
    /// Nanoseconds since the last packet of either direction.
    pub(super) silence: i64,
    /// Minimum time from a packet at the capture point to the response of this direction's sender.
    pub(super) sender_replies: i64,
    /// Minimum round-trip time between the ends.
    pub(super) round_trip: Option<i64>,
    /// Whether SACK was negotiated but no block has been seen. Either the capture cuts the blocks off, or
    /// they were not needed yet.
    pub(super) hides_sacks: bool,
    /// The MSS in the SYN of the other end.
    pub(super) peer_mss: Option<u16>,
}

/// The loss recovery that is in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Repairing {
    #[default]
    Nothing,
    /// Fast recovery, until `recover` is acknowledged.
    Fast {
        recover: u64,
        /// Whether a partial ACK has arrived and has not triggered a retransmission yet.
        partial: bool,
        /// Whether it began during the recovery after a timeout, which continues in parallel.
        after_timeout: bool,
    },
    AfterTimeout {
        recover: u64,
    },
}

/// Totals of one direction.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Number of packets of the sender.
    pub(super) packets: u64,
    pub(super) data_packets: u64,
    pub(super) sent_bytes: u64,
    pub(super) acked_bytes: u64,
    /// Number of packets of the other end that acknowledge this direction.
    pub(super) acks: u64,
}

/// Payload sizes of segments in bytes.
#[derive(Debug, Default)]
pub(super) struct SegmentSizes {
    pub(super) longest: u32,
    /// The size of the last new segment.
    pub(super) last_new: u32,
}

#[derive(Debug, Default)]
pub(super) struct AckTimes {
    pub(super) last: CompactOption,
    /// The times when an ACK for new data restarted the timer: the last time, and the time before that.
    pub(super) advanced: [i64; 2],
}

impl AckTimes {
    pub(super) fn advance(&mut self, at: i64) {
        self.advanced = [at, self.advanced[0]];
    }
}

/// Detects whether the sender increments the IP identification for each packet.
#[derive(Debug, Default)]
pub(super) struct IpIds {
    evidence: i8,
    last: Option<u16>,
}

impl IpIds {
    pub(super) fn learn(&mut self, id: Option<u16>) {
        if let (Some(id), Some(last)) = (id, self.last) {
            let step = id.wrapping_sub(last);
            self.evidence = if (1..=64).contains(&step) {
                (self.evidence + 1).min(16)
            } else {
                (self.evidence - 2).max(-16)
            };
        }
        self.last = id;
    }

    /// Returns whether the packet with identification `id` was sent before the one with `other`, or `None` if
    /// unknown.
    pub(super) fn is_before(&self, id: Option<u16>, other: Option<u16>) -> Option<bool> {
        let (id, other) = (id?, other?);
        (self.evidence > 3).then(|| (id.wrapping_sub(other) as i16) < 0)
    }
}

#[derive(Debug)]
pub(super) struct Direction {
    pub(super) numbering: Numbering,
    pub(super) flight: Flight,
    pub(super) repairing: Repairing,
    pub(super) dupacks: u32,
    /// Whether new data was sent since the first duplicate ACK.
    pub(super) sent_on_dupacks: bool,
    pub(super) window: ReceiverWindow,
    pub(super) ack_times: AckTimes,
    /// Whether a packet was sent since the last ACK.
    pub(super) ack_is_answered: bool,
    pub(super) sizes: SegmentSizes,
    pub(super) ip_ids: IpIds,
    pub(super) time_spent: TimeSpent,
    pub(super) rtt: Rtt,
    pub(super) series: Series,
    pub(super) rounds: Rounds,
    pub(super) beginning: Beginning,
    pub(super) counts: Counts,
    pub(super) ack_counts: AckCounts,
    max_flight: u32,
    pub(super) marks: OnDemand<Marks>,
    pub(super) anomalies: OnDemand<Anomalies>,
    pub(super) trace: Option<Box<Trace>>,
}

impl Direction {
    pub(super) fn new(trace: Option<Trace>) -> Self {
        Self {
            numbering: Numbering::new(),
            flight: Flight::default(),
            repairing: Repairing::Nothing,
            dupacks: 0,
            sent_on_dupacks: false,
            window: ReceiverWindow::new(),
            ack_times: AckTimes::default(),
            ack_is_answered: false,
            sizes: SegmentSizes::default(),
            ip_ids: IpIds::default(),
            time_spent: TimeSpent::default(),
            rtt: Rtt::default(),
            series: Series::default(),
            rounds: Rounds::default(),
            beginning: Beginning::default(),
            counts: Counts::default(),
            ack_counts: AckCounts::default(),
            max_flight: 0,
            marks: OnDemand::default(),
            anomalies: OnDemand::default(),
            trace: trace.map(Box::new),
        }
    }

    // ----- sequence numbers -----

    /// Initializes the numbering from a packet of either end.
    pub(super) fn begin(&mut self, seq: Seq) {
        if self.numbering.begin(seq) {
            self.flight.begin(BASE);
        }
    }

    /// Initializes the numbering from a SYN.
    pub(super) fn syn(&mut self, seq: Seq, mss: Option<u16>) {
        if self.numbering.begin_with_syn(seq) {
            self.flight.begin(BASE);
        }
        if let Some(offset) = self.offset(seq) {
            self.numbering.set_zero(offset);
        }
        self.numbering.syn_seen = true;
        self.numbering.syn_mss = mss;
    }

    pub(super) fn offset(&self, seq: Seq) -> Option<u64> {
        self.numbering.offset(seq, self.flight.max)
    }

    pub(super) fn may_begin_with(&self, seq: Seq) -> bool {
        self.numbering.may_begin_with(seq, self.flight.max)
    }

    // ----- state -----

    pub(super) fn una(&self) -> u64 {
        self.flight.una().unwrap_or(0)
    }

    pub(super) fn segment(&self) -> u32 {
        self.sizes.longest.max(1)
    }

    /// Returns the bytes in flight, limited to `u32`. A window is at most 2^30 bytes (RFC 7323 §2.3), so a
    /// larger value means that the capture has missed packets.
    pub(super) fn flight_bytes(&self) -> u32 {
        self.flight.bytes(self.dupacks, self.segment()).try_into().unwrap_or(u32::MAX)
    }

    /// Returns the longest payload of a packet on the path. A capture on a host may contain longer packets,
    /// which the device splits (TSO).
    pub(super) fn path_segment(&self, peer_mss: Option<u16>) -> u32 {
        let longest = self.segment();
        match peer_mss.map(u32::from) {
            // RFC 6691 §2: the MSS does not account for TCP options. Timestamps take 12 bytes of it.
            Some(mss) if longest > mss => mss.saturating_sub(12).max(1),
            _ => longest,
        }
    }

    /// Returns the number of bytes that still fit into the receiver's window, if known.
    pub(super) fn room(&self) -> Option<u64> {
        self.window.room(self.flight.pass_next)
    }

    fn spends(&self, peer_mss: Option<u16>) -> SpentOn {
        let outstanding = self.flight.is_outstanding();
        let all_new = self.flight.pass_next >= self.flight.max;
        // A packet with several segments (TSO) ends short only if its last segment is not full. Their number
        // may vary although the sender has more data.
        let ends_short = !self.sizes.last_new.is_multiple_of(self.path_segment(peer_mss));
        if self.window.is_closed() {
            SpentOn::ZeroWindow
        } else if self.room().is_some_and(|room| room < u64::from(self.segment())) {
            SpentOn::WindowLimited
        } else if !outstanding || self.repairing == Repairing::Nothing && all_new && ends_short {
            SpentOn::ApplicationLimited
        } else {
            SpentOn::Network
        }
    }

    /// Accounts for the time up to a packet of either end, after the packet has been processed.
    pub(super) fn count_time(&mut self, now: &Moment, shows: Shows) {
        let (spent, passed) = self.time_spent.pass(now.at, shows);
        // Between an ACK and the data that it triggers, nothing may be outstanding for a moment. This is not
        // a limit.
        if spent != SpentOn::Network && passed > self.rtt.min().unwrap_or(0) / 4 {
            self.rounds.limited();
            if let Some(anomalies) = self.anomalies.get_mut() {
                anomalies.congestion.interrupted();
            }
        }
        if shows == Shows::DataAcked {
            self.time_spent.commit();
        }
        let (spends, flight) = (self.spends(now.peer_mss), self.flight_bytes());
        self.time_spent.set(spends, flight);
        if self.sizes.longest == 0 {
            return;
        }
        self.rounds.flight(flight);
        self.max_flight = self.max_flight.max(flight);
        let estimated = self.rounds.estimate();
        if let Some(trace) = &mut self.trace {
            let point = WindowPoint {
                at: now.at,
                in_flight: u64::from(flight),
                estimated,
                cwnd: None,
                ssthresh: None,
            };
            match trace.windows.last_mut() {
                Some(last) if last.at == point.at => *last = point,
                Some(last) if last.in_flight == u64::from(flight) && last.estimated == estimated => {}
                _ => trace.windows.push(point),
            }
        }
    }

    /// Counts the marks that routers and the sender wrote into the headers of one of the sender's packets.
    pub(super) fn count_marks(&mut self, packet: &Packet) {
        self.counts.packets += 1;
        let cwr = packet.flags.contains(Flags::CWR) && !packet.flags.contains(Flags::SYN);
        if cwr && let Some(anomalies) = self.anomalies.get_mut() {
            anomalies.congestion.interrupted();
        }
        let reset = packet.flags.contains(Flags::RST);
        if packet.ecn == Ecn::NotEct && !cwr && !reset {
            return;
        }
        let marks = self.marks.get_or_default();
        marks.ecn_capable += u64::from(packet.ecn != Ecn::NotEct);
        marks.ecn_ce += u64::from(packet.ecn == Ecn::Ce);
        marks.cwr += u64::from(cwr);
        marks.resets += u64::from(reset);
    }

    /// Records that the retransmission `anomalies.recent[at]` was spurious.
    pub(super) fn prove(&mut self, at: usize, proof: Proof) {
        let Some(index) = self.anomalies.get_or_default().prove(at, proof) else { return };
        if let Some(segment) = self.trace.as_mut().and_then(|trace| trace.segments.get_mut(index)) {
            segment.fate = Fate::Spurious { proof };
        }
    }

    pub(super) fn record(&mut self, segment: SentSegment) -> usize {
        let Some(trace) = &mut self.trace else { return 0 };
        trace.segments.push(segment);
        trace.segments.len() - 1
    }

    /// Returns the heap memory in bytes, without the trace.
    pub(super) fn heap(&self) -> usize {
        let marks = self.marks.get().map_or(0, |marks| size_of_val(marks) + ALLOCATOR_OVERHEAD);
        let anomalies = self.anomalies.get().map_or(0, Anomalies::heap);
        self.flight.heap()
            + self.time_spent.heap()
            + self.rtt.heap()
            + self.series.heap()
            + marks
            + anomalies
            + self.ack_counts.heap()
    }

    // ----- findings -----

    /// Returns whether data was outstanding or the receiver's window was closed at the end of the capture, or
    /// whether the capture does not contain ACKs.
    fn is_left_undone(&self) -> bool {
        let end = self.numbering.fin.as_offset().map_or(self.flight.max, |fin| fin - 1);
        self.counts.acks == 0 || self.una() < end.min(self.flight.max) || self.window.is_closed()
    }

    pub(super) fn findings(
        mut self,
        ends: [std::net::SocketAddr; 2],
        me: usize,
        capture_at: CaptureAt,
        peer_mss: Option<u16>,
    ) -> (DirectionFindings, Option<Trace>) {
        let rtt_of = match capture_at {
            CaptureAt::End { end } if end == me => RttOf::RoundTrip,
            CaptureAt::End { .. } => RttOf::ReceiverDelay,
            CaptureAt::Between { .. } => RttOf::PartOfRoundTrip,
            CaptureAt::Unknown => RttOf::Unknown,
        };
        if let Some(trace) = &mut self.trace {
            trace.rtt_of = rtt_of;
        }
        if let (RttOf::ReceiverDelay, Some(trace)) = (rtt_of, &mut self.trace) {
            // Segments that pass a capture point at the receiver have arrived.
            for segment in trace.segments.iter_mut().filter(|segment| segment.fate == Fate::Unknown) {
                segment.fate = Fate::Arrived { at: segment.at as Offset };
            }
        }
        let total = if self.counts.acks == 0 {
            self.time_spent.total_unacknowledged()
        } else {
            self.time_spent.total()
        };
        let seconds = total as f64 / 1e9;
        let mean_flight = self.time_spent.mean_flight();
        if self.is_left_undone() {
            self.time_spent.commit();
        }
        let rate = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let path_segment = self.path_segment(peer_mss);
        let anomalies = self.anomalies.into_inner();
        // A capture at the receiver does not show data in transit, only data that the receiver has not
        // acknowledged.
        let flight_is_known = rtt_of != RttOf::ReceiverDelay && self.counts.acks > 0;
        let estimated = if self.sizes.longest > 0 { self.rounds.max() } else { 0 };
        let is_told = flight_is_known || self.counts.data_packets == 0;
        let windows = WindowFindings {
            max_flight_bytes: is_told.then_some(u64::from(self.max_flight)),
            mean_flight_bytes: is_told.then_some(mean_flight),
            max_estimated_cwnd_bytes: is_told.then_some(estimated),
            max_receiver_window_bytes: u64::from(self.window.most()),
            min_receiver_window_bytes: self.window.least().map(u64::from),
            unscaled: self.window.scale == Scale::Unknown,
            zero_windows: anomalies.zero_windows,
            shrunk: anomalies.shrunk,
        };
        let beginning = self.numbering.syn_seen.then_some(&self.beginning);
        // At other capture points, the data in flight before the capture point is not visible.
        let congestion = if rtt_of == RttOf::RoundTrip && self.counts.acks > 0 {
            anomalies.congestion.findings(path_segment)
        } else {
            CongestionFindings::default()
        };
        let findings = DirectionFindings {
            from: ends[me],
            to: ends[1 - me],
            packets: self.counts.packets,
            data_packets: self.counts.data_packets,
            sent_bytes: self.counts.sent_bytes,
            acked_bytes: self.counts.acked_bytes,
            acked_unseen_bytes: anomalies.acked_unseen,
            transfer_seconds: seconds,
            goodput_bit_per_s: rate(self.counts.acked_bytes),
            throughput_bit_per_s: rate(self.counts.sent_bytes),
            series: self.series.findings(),
            retransmissions: anomalies.retransmissions,
            rtt: self.rtt.findings(),
            rtt_of,
            window: windows,
            time: self.time_spent.findings(is_told),
            arrivals: anomalies.arrivals,
            acks: AckFindings {
                packets: self.counts.acks,
                policy: self.ack_counts.findings(),
                ..anomalies.acks
            },
            marks: self.marks.into_inner(),
            sender: guess::findings(
                &anomalies.guess,
                &self.rounds,
                beginning,
                peer_mss,
                self.sizes.longest,
                flight_is_known,
                congestion,
            ),
            path_mtu: None,
        };
        (findings, self.trace.map(|trace| *trace))
    }
}
