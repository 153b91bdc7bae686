//! The data that one end sends, and the ACKs for them: what is remembered of them while they are under way.
//!
//! `send` takes its packets in, `ack` those of the other end.

use std::ops::Range;

use airwire::segment::{Ecn, Flags};
use airwire::seq::Seq;

use super::anomalies::Trouble;
use super::compact::{ALLOCATION, Maybe, Seldom};
use super::findings::{AckFindings, CaptureAt, DirectionFindings, Marks, RttOf, WindowFindings};
use super::flight::Flight;
use super::guess::{self, Beginning, Rounds};
use super::rtt::Rtt;
use super::series::Series;
use super::time_spent::{Clocks, Spent};
use crate::packet::Packet;
use crate::trace::{Fate, Offset, Proof, SentSegment, Trace, WindowPoint};

/// Offset of the first number seen: there is room below, for what was sent before the capture began.
pub(super) const BASE: u64 = 1 << 32;

/// What a direction is told about a packet beside the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Nanoseconds since the connection's first packet.
    pub(super) at: i64,
    /// Since the last packet of either direction.
    pub(super) silence: i64,
    /// What it takes at least until something that the capture sees is answered by this direction's sender.
    pub(super) sender_answers: i64,
    /// The least round trip from end to end.
    pub(super) round_trip: Option<i64>,
}

/// How the receiver's windows are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// No SYN told.
    Unknown,
    Shift(u8),
}

/// What the sender is busy with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Repairing {
    #[default]
    Nothing,
    /// Until `recover` is acknowledged.
    Fast {
        recover: u64,
        /// An ACK for a part has come, and nothing upon it yet.
        partial: bool,
        /// It began while a timeout was being repaired, which goes on beside it.
        after_timeout: bool,
    },
    AfterTimeout {
        recover: u64,
    },
}

#[derive(Debug)]
pub(super) struct Direction {
    base: Option<Seq>,
    /// What is shown as offset 0.
    zero: u64,
    pub(super) syn_seen: bool,
    pub(super) syn_mss: Option<u16>,
    pub(super) flight: Flight,
    pub(super) repairing: Repairing,
    pub(super) dupacks: u32,
    /// Something new has left since the first of them.
    pub(super) sent_on_dupacks: bool,
    pub(super) window: Option<u16>,
    pub(super) edge: Maybe,
    pub(super) scale: Scale,
    pub(super) last_ack: Maybe,
    /// When the timer was last restarted by an ACK, and when it was before.
    pub(super) advanced: [i64; 2],
    /// Behind the FIN.
    pub(super) fin: Maybe,
    pub(super) fin_acked: bool,
    pub(super) longest: u32,
    pub(super) last_new_len: u32,
    /// Whether IP identifications seem to count packets.
    pub(super) ids_count: i8,
    pub(super) last_id: Option<u16>,
    /// Packets in a row that cannot belong to this connection as it is known.
    pub(super) strays: u8,
    pub(super) clocks: Clocks,
    pub(super) rtt: Rtt,
    pub(super) series: Series,
    pub(super) rounds: Rounds,
    pub(super) beginning: Beginning,
    pub(super) packets: u64,
    pub(super) data_packets: u64,
    pub(super) sent_bytes: u64,
    pub(super) acked_bytes: u64,
    /// Packets of the other end that acknowledge this one.
    pub(super) acks: u64,
    pub(super) max_flight: u32,
    pub(super) max_receiver_window: u32,
    pub(super) min_receiver_window: Option<u32>,
    pub(super) marks: Seldom<Marks>,
    pub(super) trouble: Seldom<Trouble>,
    pub(super) trace: Option<Box<Trace>>,
}

impl Direction {
    pub(super) fn new(trace: Option<Trace>) -> Self {
        Self {
            base: None,
            zero: BASE,
            syn_seen: false,
            syn_mss: None,
            flight: Flight::default(),
            repairing: Repairing::Nothing,
            dupacks: 0,
            sent_on_dupacks: false,
            window: None,
            edge: Maybe::default(),
            scale: Scale::Unknown,
            last_ack: Maybe::default(),
            advanced: [0; 2],
            fin: Maybe::default(),
            fin_acked: false,
            longest: 0,
            last_new_len: 0,
            ids_count: 0,
            last_id: None,
            strays: 0,
            clocks: Clocks::default(),
            rtt: Rtt::default(),
            series: Series::default(),
            rounds: Rounds::default(),
            beginning: Beginning::default(),
            packets: 0,
            data_packets: 0,
            sent_bytes: 0,
            acked_bytes: 0,
            acks: 0,
            max_flight: 0,
            max_receiver_window: 0,
            min_receiver_window: None,
            marks: Seldom::default(),
            trouble: Seldom::default(),
            trace: trace.map(Box::new),
        }
    }

    // ----- numbers -----

    /// The first number that is seen of this direction, be it sent or acknowledged.
    pub(super) fn begin(&mut self, seq: Seq) {
        if self.base.is_none() {
            self.base = Some(seq);
            // As if a SYN had been before it.
            self.zero = BASE - 1;
            self.flight.begin(BASE);
        }
    }

    pub(super) fn syn(&mut self, seq: Seq) {
        if self.base.is_none() {
            self.base = Some(seq);
            self.flight.begin(BASE);
        }
        if let Some(offset) = self.offset(seq) {
            self.zero = offset;
        }
        self.syn_seen = true;
    }

    pub(super) fn offset(&self, seq: Seq) -> Option<u64> {
        seq.offset(self.base?, self.flight.max)
    }

    /// A SYN with this number belongs to the stream that is known already.
    pub(super) fn may_begin_with(&self, seq: Seq) -> bool {
        match self.offset(seq) {
            None => self.base.is_none(),
            Some(offset) if self.syn_seen => offset == self.zero,
            // Overtaken by the first data.
            Some(offset) => offset == BASE - 1 && self.flight.max < BASE + (1 << 16),
        }
    }

    pub(super) fn shown(&self, offset: u64) -> u64 {
        offset.saturating_sub(self.zero)
    }

    pub(super) fn syn_range(&self) -> Range<u64> {
        if self.syn_seen { self.zero..self.zero + 1 } else { 0..0 }
    }

    // ----- what other files ask -----

    pub(super) fn una(&self) -> u64 {
        self.flight.una().unwrap_or(0)
    }

    pub(super) fn segment(&self) -> u32 {
        self.longest.max(1)
    }

    /// No window is larger than 2^30 (RFC 7323 §2.3): what is more than that was acknowledged unseen.
    pub(super) fn flight_bytes(&self) -> u32 {
        self.flight.bytes(self.dupacks, self.segment()).try_into().unwrap_or(u32::MAX)
    }

    pub(super) fn window_is_closed(&self) -> bool {
        self.window == Some(0)
    }

    /// As far as the receiver's window is known.
    pub(super) fn room(&self) -> Option<u64> {
        if self.scale == Scale::Unknown {
            return None;
        }
        Some(self.edge.as_offset()?.saturating_sub(self.flight.pass_next))
    }

    fn spends(&self) -> Spent {
        let outstanding = self.flight.is_outstanding();
        let all_new = self.flight.pass_next >= self.flight.max;
        if self.window_is_closed() {
            Spent::ZeroWindow
        } else if self.room().is_some_and(|room| room < u64::from(self.segment())) {
            Spent::WindowLimited
        } else if !outstanding
            || self.repairing == Repairing::Nothing && all_new && self.last_new_len < self.longest
        {
            Spent::ApplicationLimited
        } else {
            Spent::Network
        }
    }

    /// After each packet that concerns this direction.
    pub(super) fn tick(&mut self, now: &Moment, waited: bool, progress: bool) {
        let (spent, passed) = self.clocks.pass(now.at, waited);
        // Between an ACK and what it lets out nothing may be outstanding for an instant.
        if spent != Spent::Network && passed > self.rtt.min().unwrap_or(0) / 4 {
            self.rounds.limited();
        }
        if progress {
            self.clocks.commit();
        }
        let (spends, flight) = (self.spends(), self.flight_bytes());
        self.clocks.set(spends, flight);
        if self.longest == 0 {
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

    /// Marks that routers and the sender set on this end's packets.
    pub(super) fn mark(&mut self, packet: &Packet) {
        self.packets += 1;
        let cwr = packet.flags.contains(Flags::CWR) && !packet.flags.contains(Flags::SYN);
        let reset = packet.flags.contains(Flags::RST);
        if packet.ecn == Ecn::NotEct && !cwr && !reset {
            return;
        }
        let marks = self.marks.made();
        marks.ecn_capable += u64::from(packet.ecn != Ecn::NotEct);
        marks.ecn_ce += u64::from(packet.ecn == Ecn::Ce);
        marks.cwr += u64::from(cwr);
        marks.resets += u64::from(reset);
    }

    /// The retransmission in place `at` was a mistake.
    pub(super) fn prove(&mut self, at: usize, proof: Proof) {
        let Some(index) = self.trouble.made().prove(at, proof) else { return };
        if let Some(segment) = self.trace.as_mut().and_then(|trace| trace.segments.get_mut(index)) {
            segment.fate = Fate::Unneeded { proof };
        }
    }

    pub(super) fn record(&mut self, segment: SentSegment) -> usize {
        let Some(trace) = &mut self.trace else { return 0 };
        trace.segments.push(segment);
        trace.segments.len() - 1
    }

    /// Octets of heap, the trace not counted.
    pub(super) fn heap(&self) -> usize {
        let marks = self.marks.get().map_or(0, |marks| size_of_val(marks) + ALLOCATION);
        let trouble = self.trouble.get().map_or(0, Trouble::heap);
        self.flight.heap() + self.clocks.heap() + self.rtt.heap() + self.series.heap() + marks + trouble
    }

    // ----- the end -----

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
        if let (RttOf::ReceiverDelay, Some(trace)) = (rtt_of, &mut self.trace) {
            // What comes past the receiver has arrived.
            for segment in trace.segments.iter_mut().filter(|segment| segment.fate == Fate::Unknown) {
                segment.fate = Fate::Arrived { at: segment.at as Offset };
            }
        }
        let total = if self.acks == 0 { self.clocks.total_unacknowledged() } else { self.clocks.total() };
        let seconds = total as f64 / 1e9;
        let rate = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let trouble = self.trouble.into_inner();
        // At the receiver only what it has not answered yet is seen, and without its ACKs nothing.
        let flight_is_known = rtt_of != RttOf::ReceiverDelay && self.acks > 0;
        let estimated = if self.longest > 0 { self.rounds.max() } else { 0 };
        let is_told = flight_is_known || self.data_packets == 0;
        let windows = WindowFindings {
            max_flight_bytes: is_told.then_some(u64::from(self.max_flight)),
            mean_flight_bytes: is_told.then(|| self.clocks.mean_flight()),
            max_estimated_cwnd_bytes: is_told.then_some(estimated),
            max_receiver_window_bytes: u64::from(self.max_receiver_window),
            min_receiver_window_bytes: self.min_receiver_window.map(u64::from),
            unscaled: self.scale == Scale::Unknown,
            zero_windows: trouble.zero_windows,
            shrunk: trouble.shrunk,
        };
        let beginning = self.syn_seen.then_some(&self.beginning);
        let findings = DirectionFindings {
            from: ends[me],
            to: ends[1 - me],
            packets: self.packets,
            data_packets: self.data_packets,
            sent_bytes: self.sent_bytes,
            acked_bytes: self.acked_bytes,
            acked_unseen_bytes: trouble.acked_unseen,
            transfer_seconds: seconds,
            goodput_bit_per_s: rate(self.acked_bytes),
            throughput_bit_per_s: rate(self.sent_bytes),
            series: self.series.findings(),
            retransmissions: trouble.again,
            rtt: self.rtt.findings(),
            rtt_of,
            window: windows,
            time: self.clocks.findings(),
            arrivals: trouble.arrivals,
            acks: AckFindings { packets: self.acks, ..trouble.acks },
            marks: self.marks.into_inner(),
            sender: guess::findings(
                &trouble.guess,
                &self.rounds,
                beginning,
                peer_mss,
                self.longest,
                flight_is_known,
            ),
        };
        (findings, self.trace.map(|trace| *trace))
    }
}
