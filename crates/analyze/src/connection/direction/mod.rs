//! Analyses one direction: the data that one end sends, and the ACKs for this data.
//!
//! [`DirectionAnalysis`] is the state while the data is in flight. `data` processes the packets of the data's sender,
//! and `acks` processes the packets of the other end.
//!
//! | Question | Module |
//! |---|---|
//! | What limits the sender, and for how long? | `limits`, `receiver_window` |
//! | Why was a segment retransmitted? | `retransmission_cause`, `recovery` |
//! | Was a retransmission unnecessary? | `spurious` |
//! | For how long did nothing arrive? | `outages` |
//! | Which data is in flight? | `flight` |
//! | Which data was captured twice with other packet boundaries? | `captured_again` |
//! | How large is the sender's window, and how does it grow? | `rounds` |
//! | Which loss recovery and congestion control does the sender use? | `sender`, `congestion` |
//! | How does the receiver acknowledge? | `ack_policy` |
//! | How much was sent and acknowledged when? | `series` |
//! | What limits each round trip, how long is the queue, and how do losses occur? | `round_trips` |

mod ack_policy;
mod acks;
mod anomalies;
mod captured_again;
mod congestion;
mod data;
mod flight;
mod limits;
mod numbering;
mod outages;
mod receiver_window;
mod recovery;
mod retransmission_cause;
mod round_trips;
mod rounds;
mod sender;
mod series;
mod spurious;

use std::net::SocketAddr;

use aircaptures::packet::Packet;
use airwire::segment::{Ecn, Flags};
use airwire::seq::Seq;

use self::ack_policy::AckCounts;
use self::acks::MAX_UNCAPTURED;
use self::anomalies::Anomalies;
use self::data::WINDOW_TOLERANCE;
use self::flight::Flight;
use self::limits::LimitTimes;
use self::numbering::{BASE, Numbering};
use self::receiver_window::{ReceiverWindow, Scale};
use self::recovery::Recovery;
use self::round_trips::RoundTrips;
use self::rounds::Rounds;
use self::series::Series;
use super::findings::{
    AckFindings, CapturePoint, CongestionFindings, DirectionFindings, Evidence, Marks, PartialAcks, RttOf,
    SenderFindings, WindowFindings,
};
use crate::compact::{ALLOCATOR_OVERHEAD, CompactOption, OnDemand};
use crate::resolution::greatest_common_divisor;
use crate::rtt::Rtt;
use crate::trace::{Fate, SentSegment, Trace};

/// Information about a packet that the packet itself does not contain.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketContext {
    /// Nanoseconds since the connection's first packet.
    pub(super) at: i64,
    /// Nanoseconds since the last packet of either direction.
    pub(super) silence: i64,
    /// Minimum time from a packet at the capture point to the response of this direction's sender.
    pub(super) sender_reply_delay: i64,
    /// Minimum round-trip time between the ends.
    pub(super) round_trip: Option<i64>,
    /// The timestamp of the receiver's SYN, if the capture contains it.
    pub(super) peer_syn_tsval: Option<u32>,
    /// Whether SACK was negotiated but the capture has shown no block so far. Either the capture cuts the
    /// blocks off, or the receiver has not needed any.
    pub(super) hides_sacks: bool,
    /// The MSS in the SYN of the other end.
    pub(super) peer_mss: Option<u16>,
    /// Whether the other end sent the last data.
    pub(super) is_answer: bool,
}

/// Properties of the capture on which the possible findings depend.
#[derive(Clone, Copy, Debug)]
pub(super) struct CaptureView {
    pub(super) capture_at: CapturePoint,
    /// Whether both directions seem to be recorded with the same clock.
    pub(super) has_one_clock: bool,
    pub(super) clock_resolution_seconds: Option<f64>,
}

/// Totals of one direction.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// Number of packets of the sender.
    packets: u32,
    data_packets: u32,
    sent_bytes: u64,
    acked_bytes: u64,
    /// Number of packets of the other end that acknowledge this direction.
    acks: u32,
}

/// Payload sizes of segments in bytes.
#[derive(Clone, Debug, Default)]
struct SegmentSizes {
    longest: u32,
    /// The size of the last new segment.
    last_new: u32,
    /// The greatest common divisor of the sizes of packets without PSH and FIN, or 0.
    divisor: u32,
    /// The longest segment that the SYNs allow, or 0 without a SYN.
    max_segment: u16,
    /// The longest segment into which a device has split a packet, or 0.
    piece: u16,
}

/// The longest payload of an Ethernet frame, without and with jumbo frames.
const ETHERNET_SEGMENT: u32 = 1460;
const JUMBO_SEGMENT: u32 = 8960;
/// Shortest segment that is inferred from the sizes of packets.
const MIN_SEGMENT: u32 = 500;

impl SegmentSizes {
    /// Records the size of a packet with new data.
    fn add(&mut self, len: u32, flags: Flags) {
        self.last_new = len;
        // A device splits packets without PSH into segments of equal size.
        if !flags.intersects(Flags::PSH.with(Flags::FIN))
            && (self.divisor == 0 || !len.is_multiple_of(self.divisor))
        {
            let divisor = greatest_common_divisor(u64::from(len), u64::from(self.divisor));
            self.divisor = divisor as u32;
        }
    }

    /// Returns the longest payload of a packet on the path. A capture on a host may contain longer packets,
    /// which the device splits or has merged (TSO, GSO, GRO).
    fn on_path(&self) -> u32 {
        let longest = self.longest.max(1);
        let max = match u32::from(self.max_segment) {
            0 if longest <= ETHERNET_SEGMENT => return longest,
            // Without a SYN, a packet may be a jumbo frame.
            0 if longest <= JUMBO_SEGMENT && self.divisor > ETHERNET_SEGMENT => return longest,
            0 => ETHERNET_SEGMENT,
            max => max,
        };
        if longest <= max {
            longest
        } else if self.piece > 0 {
            u32::from(self.piece)
        } else if (MIN_SEGMENT..=max).contains(&self.divisor) {
            self.divisor
        } else if self.max_segment == 0 && longest <= JUMBO_SEGMENT {
            longest
        } else {
            max
        }
    }
}

/// The data sent before the first ACK for data.
#[derive(Clone, Debug, Default)]
struct InitialFlight {
    bytes: u32,
    segments: u16,
    /// Whether the first ACK has arrived.
    is_complete: bool,
    /// The number of segments that echo the timestamp of the peer's SYN. The sender sent them before it
    /// received an ACK, wherever the capture was made.
    echoing: u8,
}

#[derive(Clone, Debug, Default)]
struct AckTimes {
    last: CompactOption,
    /// The times when an ACK for new data restarted the timer: the last time, and the time before that.
    advanced: [i64; 2],
}

/// Detects whether the sender increments the IP identification for each packet.
#[derive(Clone, Debug, Default)]
struct IpIds {
    evidence: i8,
    /// Evidence that only packets of this connection increment the identification.
    counts_packets: i8,
    last: Option<u16>,
}

impl IpIds {
    fn learn(&mut self, id: Option<u16>) {
        if let (Some(id), Some(last)) = (id, self.last) {
            let increments = (1..=64).contains(&id.wrapping_sub(last));
            self.evidence =
                if increments { (self.evidence + 1).min(16) } else { (self.evidence - 2).max(-16) };
            let is_next = id.wrapping_sub(last) == 1;
            self.counts_packets =
                if is_next { (self.counts_packets + 1).min(16) } else { (self.counts_packets - 2).max(-16) };
        }
        self.last = id;
    }

    /// Returns whether the identification may distinguish packets, according to the packets so far.
    fn may_identify(&self) -> bool {
        self.evidence >= 0
    }

    /// Returns whether several packets were sent between the last packet and the one with identification `id`.
    fn shows_lost_packets(&self, id: Option<u16>) -> bool {
        const MIN_LOST: u16 = 2;
        const MAX_LOST: u16 = 1 << 12;
        let Some((id, last)) = id.zip(self.last) else { return false };
        self.counts_packets > 8 && (MIN_LOST..=MAX_LOST).contains(&id.wrapping_sub(last).wrapping_sub(1))
    }

    /// Returns whether the packet with identification `id` was sent before the one with `other`, or `None` if
    /// unknown.
    fn is_before(&self, id: Option<u16>, other: Option<u16>) -> Option<bool> {
        let (id, other) = (id?, other?);
        (self.evidence > 3).then(|| (id.wrapping_sub(other) as i16) < 0)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct DirectionAnalysis {
    numbering: Numbering,
    flight: Flight,
    recovery: Recovery,
    dupacks: u32,
    /// Whether new data was sent since the first duplicate ACK.
    sent_on_dupacks: bool,
    window: ReceiverWindow,
    ack_times: AckTimes,
    /// Whether a packet was sent since the last ACK.
    ack_is_answered: bool,
    sizes: SegmentSizes,
    ip_ids: IpIds,
    limits: LimitTimes,
    rtt: Rtt,
    series: Series,
    rounds: Rounds,
    initial_flight: InitialFlight,
    counts: Counts,
    ack_counts: AckCounts,
    marks: OnDemand<Marks>,
    anomalies: OnDemand<Anomalies>,
    round_trips: Option<Box<RoundTrips>>,
    /// Whether the SYN or SYN-ACK itself was ECN-capable, which RFC 3168 §6.1.1 forbids and RFC 8257 does.
    syn_is_ecn_capable: bool,
    trace: Option<Box<Trace>>,
}

impl DirectionAnalysis {
    pub(super) fn new(trace: Option<Trace>) -> Self {
        Self { trace: trace.map(Box::new), ..Self::default() }
    }

    /// Returns the state of the data in flight, with the evidence from `at` on.
    pub(super) fn continued(&self, at: i64) -> Self {
        Self {
            numbering: self.numbering.clone(),
            flight: self.flight.clone(),
            recovery: self.recovery,
            dupacks: self.dupacks,
            sent_on_dupacks: self.sent_on_dupacks,
            window: self.window.continued(),
            ack_times: self.ack_times.clone(),
            ack_is_answered: self.ack_is_answered,
            sizes: self.sizes.clone(),
            ip_ids: self.ip_ids.clone(),
            limits: self.limits.continued(at),
            rtt: self.rtt.continued(),
            rounds: self.rounds.continued(),
            initial_flight: InitialFlight { is_complete: true, ..InitialFlight::default() },
            anomalies: self.anomalies.map(|anomalies| anomalies.continued(at)),
            round_trips: self.round_trips.as_ref().map(|found| Box::new(found.continued(at))),
            ..Self::default()
        }
    }

    // ----- sequence numbers -----

    /// Initializes the numbering from a packet of either end.
    fn begin(&mut self, seq: Seq) {
        if self.numbering.begin(seq) {
            self.flight.begin(BASE);
        }
    }

    /// Initializes the numbering from a SYN.
    fn begin_with_syn(&mut self, seq: Seq, mss: Option<u16>) {
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

    /// Returns whether an ACK with this number may acknowledge this stream, including its SYN.
    pub(super) fn may_be_acknowledged_by(&self, ack: Option<Seq>) -> bool {
        let acked = ack.and_then(|ack| self.offset(ack));
        let range = self.numbering.syn_range().end..=self.flight.max + MAX_UNCAPTURED;
        acked.is_some_and(|acked| range.contains(&acked))
    }

    /// Returns whether an ACK with this number acknowledges captured data, or only the SYN.
    pub(super) fn contains(&self, ack: Option<Seq>) -> bool {
        let acked = ack.and_then(|ack| self.offset(ack));
        acked.is_some_and(|acked| (self.numbering.syn_range().end..=self.flight.max).contains(&acked))
    }

    /// Returns whether an RST with this number is valid. RFC 5961 §3.2: an RST outside the receive window must
    /// be discarded. A tolerance allows for packets that the capture has missed.
    pub(super) fn may_be_reset_by(&self, seq: Seq) -> bool {
        let Some(offset) = self.offset(seq) else { return true };
        let edge = self.window.edge().unwrap_or(0).max(self.flight.max + WINDOW_TOLERANCE);
        !self.numbering.syn_seen || (self.una().saturating_sub(1)..=edge).contains(&offset)
    }

    // ----- state -----

    pub(super) fn una(&self) -> u64 {
        self.flight.una().unwrap_or(0)
    }

    /// Returns whether data is neither acknowledged nor SACKed, as far as the capture shows.
    pub(super) fn has_outstanding(&self) -> bool {
        self.has_acks() && self.flight.is_outstanding()
    }

    /// Returns the end of the data sent so far.
    pub(super) fn sent_end(&self) -> u64 {
        self.flight.max
    }

    /// Returns the MSS option of the SYN.
    pub(super) fn syn_mss(&self) -> Option<u16> {
        self.numbering.syn_mss
    }

    pub(super) fn is_fin_acked(&self) -> bool {
        self.numbering.fin_acked
    }

    pub(super) fn min_rtt(&self) -> Option<i64> {
        self.rtt.min()
    }

    pub(super) fn has_acks(&self) -> bool {
        self.counts.acks > 0
    }

    /// Returns the acknowledged data in bytes, or the sent data if the capture contains no ACKs.
    pub(super) fn transferred(&self) -> u64 {
        if self.has_acks() { self.counts.acked_bytes } else { self.counts.sent_bytes }
    }

    /// Sets the scale of the windows that limit this direction's data.
    pub(super) fn set_window_scale(&mut self, shift: u8) {
        self.window.scale = Scale::Shift(shift);
    }

    /// Sets the longest segment that the SYNs allow. RFC 6691 §2: the MSS does not account for TCP options.
    /// Timestamps take 12 bytes of the MSS.
    pub(super) fn set_max_segment(&mut self, mss: Option<u16>, timestamps: bool) {
        let options = if timestamps { 12 } else { 0 };
        self.sizes.max_segment = mss.map_or(0, |mss| mss.saturating_sub(options).max(1));
    }

    /// Returns the longest payload of a packet on the path.
    pub(super) fn path_segment(&self) -> u32 {
        self.sizes.on_path()
    }

    /// Returns the smallest possible difference between the clocks of the packets and their ACKs in
    /// nanoseconds, or `None` without evidence of a difference.
    pub(super) fn clock_difference(&self) -> Option<i64> {
        self.anomalies.get()?.after_ack.clock_difference()
    }

    /// Returns whether an ACK with this number acknowledges outstanding data of which no segment was
    /// retransmitted.
    pub(super) fn is_first_copy_acked(&self, ack: Seq) -> bool {
        let acked = self.offset(ack).filter(|ack| (self.una() + 1..=self.flight.max).contains(ack));
        acked.is_some() && self.flight.oldest().is_some_and(|oldest| oldest.times == 1)
    }

    /// Returns the number of the SYN if the capture has shown neither its ACK nor data so far.
    pub(super) fn unacknowledged_isn(&self) -> Option<Seq> {
        let syn = self.numbering.syn_range();
        let is_unacknowledged = self.una() < syn.end && self.flight.max == syn.end;
        if is_unacknowledged { self.numbering.isn() } else { None }
    }

    /// Forgets the SYN, because the connection continues with another one.
    pub(super) fn begin_again(&mut self) {
        self.numbering.begin_again();
        self.flight = Flight::default();
        self.window.forget_edge();
    }

    /// Returns the bytes in flight, limited to `u32`. A window is at most 2^30 bytes (RFC 7323 §2.3), so a
    /// larger value means that the capture has missed packets.
    fn flight_bytes(&self) -> u32 {
        self.flight.bytes(self.dupacks, self.path_segment()).try_into().unwrap_or(u32::MAX)
    }

    /// Returns the number of bytes that still fit into the receiver's window, if known.
    fn room(&self) -> Option<u64> {
        self.window.room(self.flight.pass_next)
    }

    /// Counts the marks that routers and the sender wrote into the headers of one of the sender's packets.
    fn count_marks(&mut self, packet: &Packet) {
        self.counts.packets += 1;
        let cwr = packet.flags.contains(Flags::CWR) && !packet.flags.contains(Flags::SYN);
        if cwr && let Some(anomalies) = self.anomalies.get_mut() {
            anomalies.congestion.interrupted();
        }
        self.syn_is_ecn_capable |= packet.flags.contains(Flags::SYN) && packet.ecn != Ecn::NotEct;
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

    fn record(&mut self, segment: SentSegment) -> usize {
        let Some(trace) = &mut self.trace else { return 0 };
        trace.segments.push(segment);
        trace.segments.len() - 1
    }

    /// Returns the heap memory in bytes, without the trace.
    pub(super) fn heap(&self) -> usize {
        let marks = self.marks.get().map_or(0, |marks| size_of_val(marks) + ALLOCATOR_OVERHEAD);
        let anomalies = self.anomalies.get().map_or(0, Anomalies::heap);
        self.flight.heap()
            + self.limits.heap()
            + self.rtt.heap()
            + self.series.heap()
            + marks
            + anomalies
            + self.ack_counts.heap()
            + self.round_trips.as_ref().map_or(0, |round_trips| round_trips.heap())
    }

    // ----- findings -----

    /// Returns whether data was outstanding or the receiver's window was closed at the end of the capture, or
    /// whether the capture does not contain ACKs.
    fn is_incomplete(&self) -> bool {
        let end = self.numbering.fin.as_offset().map_or(self.flight.max, |fin| fin - 1);
        !self.has_acks() || self.una() < end.min(self.flight.max) || self.window.is_closed()
    }

    /// Returns the results for the data of `ends[from]`. `base_rtt` is the minimum round-trip time between the
    /// ends in nanoseconds.
    pub(super) fn findings(
        mut self,
        ends: [SocketAddr; 2],
        from: usize,
        view: CaptureView,
        peer_mss: Option<u16>,
        base_rtt: i64,
    ) -> (DirectionFindings, Option<Trace>) {
        let CaptureView { capture_at, has_one_clock, clock_resolution_seconds } = view;
        let rtt_of = RttOf::of_direction(capture_at, from);
        if !has_one_clock {
            self.rtt = Rtt::default();
        }
        // A capture at the receiver does not show data in transit, only data that the receiver has not
        // acknowledged.
        let flight_is_known = rtt_of != RttOf::ReceiverDelay && self.has_acks() && has_one_clock;
        self.finish_trace(rtt_of, flight_is_known);
        if self.is_incomplete() {
            self.limits.commit();
        }
        let seconds = self.limits.total() as f64 / 1e9;
        let mean_flight = self.limits.mean_flight();
        let rate = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let shows_flight = flight_is_known || self.counts.data_packets == 0;
        let window = self.window_findings(shows_flight, mean_flight);
        let sender = self.sender_findings(rtt_of, flight_is_known, peer_mss, base_rtt);
        let segment = self.path_segment();
        let round_trips = self.round_trips.take().map(|found| Box::new(found.findings(base_rtt, segment)));
        let anomalies = self.anomalies.into_inner();
        let findings = DirectionFindings {
            from: ends[from],
            to: ends[1 - from],
            packets: self.counts.packets.into(),
            data_packets: self.counts.data_packets.into(),
            sent_bytes: self.counts.sent_bytes,
            acked_bytes: self.counts.acked_bytes,
            acked_unseen_bytes: anomalies.acked_uncaptured,
            is_complete: self.numbering.fin_acked,
            transfer_seconds: seconds,
            goodput_bit_per_s: rate(self.counts.acked_bytes),
            throughput_bit_per_s: rate(self.counts.sent_bytes),
            series: self.series.findings(),
            retransmissions: anomalies.retransmissions,
            rtt: self.rtt.findings().with_resolution(clock_resolution_seconds),
            rtt_of,
            window,
            time: self.limits.findings(shows_flight),
            arrivals: anomalies.arrivals,
            acks: AckFindings {
                packets: self.counts.acks.into(),
                policy: self.ack_counts.findings(),
                ..anomalies.acks
            },
            marks: self.marks.into_inner(),
            sender,
            round_trips,
            outages: anomalies.outages.findings(),
            path_mtu: None,
        };
        (findings, self.trace.map(|trace| *trace))
    }

    fn finish_trace(&mut self, rtt_of: RttOf, flight_is_known: bool) {
        let Some(trace) = &mut self.trace else { return };
        trace.rtt_of = rtt_of;
        if !flight_is_known {
            trace.windows.clear();
        }
        if rtt_of == RttOf::ReceiverDelay {
            // Segments that pass a capture point at the receiver have arrived.
            for segment in trace.segments.iter_mut().filter(|segment| segment.fate == Fate::Unknown) {
                segment.fate = Fate::Arrived { at: segment.at };
            }
        }
    }

    fn window_findings(&self, shows_flight: bool, mean_flight: f64) -> WindowFindings {
        let estimated = if self.sizes.longest > 0 { self.rounds.max() } else { 0 };
        let anomalies = self.anomalies.get();
        WindowFindings {
            max_flight_bytes: shows_flight.then_some(self.rounds.max()),
            mean_flight_bytes: shows_flight.then_some(mean_flight),
            max_estimated_cwnd_bytes: shows_flight.then_some(estimated),
            max_receiver_window_bytes: u64::from(self.window.max()),
            min_receiver_window_bytes: self.window.min().map(u64::from),
            unscaled: self.window.scale == Scale::Unknown,
            zero_windows: anomalies.map_or(0, |anomalies| anomalies.zero_windows),
            shrunk: anomalies.map_or(0, |anomalies| anomalies.shrunk),
        }
    }

    fn sender_findings(
        &mut self,
        rtt_of: RttOf,
        flight_is_known: bool,
        peer_mss: Option<u16>,
        base_rtt: i64,
    ) -> SenderFindings {
        let path_segment = self.path_segment();
        let congestion_control = self.congestion_control(rtt_of, flight_is_known, base_rtt);
        let Anomalies { sender, congestion, .. } = &*self.anomalies.get_or_default();
        let initial = &self.initial_flight;
        let has_initial = self.numbering.syn_seen && initial.segments > 0 && flight_is_known;
        SenderFindings {
            mss_option: peer_mss,
            segment_bytes: if self.sizes.longest > 0 { path_segment } else { 0 },
            longest_segment_bytes: self.sizes.longest,
            initial_window_bytes: has_initial.then_some(u64::from(initial.bytes)),
            initial_window_segments: has_initial.then_some(match self.sizes.longest > path_segment {
                true => u64::from(initial.bytes.div_ceil(path_segment)),
                false => u64::from(initial.segments),
            }),
            growth_per_round_trip: self.rounds.growth().filter(|_| flight_is_known),
            after_timeout: sender.after_timeout(),
            // These findings depend on the packets sent just after an ACK, which a capture at the receiver
            // does not show.
            partial_acks: if flight_is_known { sender.partial_acks() } else { PartialAcks::Undetermined },
            limited_transmit: if flight_is_known {
                sender.limited_transmit()
            } else {
                Evidence::Undetermined
            },
            congestion_control,
            // At other capture points, the data in flight before the capture point is not visible.
            congestion: if rtt_of == RttOf::RoundTrip && flight_is_known {
                congestion.findings(path_segment)
            } else {
                CongestionFindings::default()
            },
        }
    }
}
