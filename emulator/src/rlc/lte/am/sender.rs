//! The transmitting side of an AM entity (§5.1.3.1): concatenation, retransmission and resegmentation.

use std::collections::VecDeque;
use std::ops::Range;

use airwire::time::Instant;

use super::AmConfig;
use crate::rlc::am::send_window::{Change, Retransmission};
use crate::rlc::am::status::Status;
use crate::rlc::am::transmitter::Transmitter;
use crate::rlc::am::{AmStats, Generation, ReceiveError};
use crate::rlc::lte::codec::{AmFormat, Amd, DataField, Offsets, POLL, SEGMENT_HEADER, SegmentFields};
use crate::rlc::lte::concatenation::{FieldBounds, SduStream};
use crate::rlc::service::{BufferStatus, Event, Pdu, PduKind, Sdu, SduIds};

/// VT(A), VT(MS) and VT(S) are the edges of `transmitter.window`.
#[derive(Debug)]
pub(super) struct Sender {
    format: AmFormat,
    stream: SduStream,
    transmitter: Transmitter<SentPdu>,
    unconfirmed: Unconfirmed,
}

/// An AMD PDU that has been transmitted.
#[derive(Debug)]
struct SentPdu {
    /// The PDU with P = 0.
    octets: Vec<u8>,
    /// Octets of its header.
    header: usize,
    starts_sdu: bool,
    ends_sdu: bool,
    /// Offset of the end of each element in the data field, except the last one.
    ends: Offsets,
    /// Numbers of the SDUs in the PDU, in the order of their transmission.
    sdus: Range<u64>,
}

/// SDUs whose transmission has begun, and which are not acknowledged completely.
#[derive(Debug, Default)]
struct Unconfirmed {
    /// SDU number `first` + i is at index i.
    sdus: VecDeque<UnconfirmedSdu>,
    first: u64,
}

#[derive(Debug)]
struct UnconfirmedSdu {
    id: u64,
    /// Number of PDUs with octets of the SDU that are not acknowledged.
    pdus: u32,
    /// Whether the last octet has been transmitted.
    is_complete: bool,
}

impl Unconfirmed {
    /// Records that a new PDU carries these SDUs. Returns their numbers.
    fn add(&mut self, pieces: &[(Sdu, Range<u32>)]) -> Range<u64> {
        let mut end = self.first + self.sdus.len() as u64;
        let mut start = end;
        for (sdu, range) in pieces {
            if range.start == 0 {
                self.sdus.push_back(UnconfirmedSdu { id: sdu.id, pdus: 0, is_complete: false });
                end += 1;
            } else {
                start -= 1;
            }
            if let Some(last) = self.sdus.back_mut() {
                last.pdus += 1;
                last.is_complete = range.end as usize == sdu.octets.len();
            }
        }
        start..end
    }

    fn id(&self, number: u64) -> Option<u64> {
        Some(self.sdus.get(number.checked_sub(self.first)? as usize)?.id)
    }

    fn ids(&self, numbers: Range<u64>) -> SduIds {
        numbers.filter_map(|number| self.id(number)).collect()
    }

    /// Handles the acknowledgement of a PDU. Appends the SDUs that it confirms to `events`.
    fn acknowledge(&mut self, numbers: Range<u64>, events: &mut Vec<Event>) {
        for number in numbers {
            let index = number.checked_sub(self.first).map(|index| index as usize);
            let Some(sdu) = index.and_then(|index| self.sdus.get_mut(index)) else { continue };
            sdu.pdus -= 1;
            if sdu.pdus == 0 && sdu.is_complete {
                events.push(Event::Confirmed(sdu.id));
            }
        }
        while self.sdus.pop_front_if(|sdu| sdu.pdus == 0 && sdu.is_complete).is_some() {
            self.first += 1;
        }
    }
}

impl Sender {
    pub(super) fn new(config: &AmConfig) -> Self {
        let bits = config.format.sn.bits();
        Self {
            format: config.format,
            stream: SduStream::default(),
            transmitter: Transmitter::new(config.parameters.clone(), bits, Generation::Lte),
            unconfirmed: Unconfirmed::default(),
        }
    }

    pub(super) fn submit(&mut self, sdu: Sdu) {
        self.stream.push(sdu);
    }

    pub(super) fn discard(&mut self, id: u64, events: &mut Vec<Event>) -> bool {
        let discarded = self.stream.discard(id);
        if discarded {
            let max_retx = self.transmitter.handle_discard(!self.stream.is_empty());
            events.extend(max_retx.and_then(|pdu| self.unconfirmed.max_retx(pdu)));
        }
        discarded
    }

    pub(super) fn buffer_status(&self) -> BufferStatus {
        BufferStatus {
            new: self.stream.octets(),
            retransmission: self.transmitter.window.pending_octets(),
            status: 0,
            sdus: self.stream.waiting_sdus(),
        }
    }

    pub(super) fn can_send(&self) -> bool {
        let window = &self.transmitter.window;
        window.has_pending() || !window.is_full() && !self.stream.is_empty()
    }

    /// The next AMD PDU or AMD PDU segment of at most `room` octets. Retransmissions have priority.
    pub(super) fn next_pdu(&mut self, now: Instant, room: usize, stats: &mut AmStats) -> Option<Pdu> {
        let window = &mut self.transmitter.window;
        if let Some((Retransmission { sn, range, retx_count }, sent)) = window.next_retransmission() {
            let wire = self.format.sn.bits().wire(sn);
            let is_whole = range.len() + sent.header == sent.octets.len();
            // §5.2.1: an AMD PDU that fits entirely is repeated as it is, except for the P field. Otherwise,
            // it is segmented.
            let (octets, submitted) = if is_whole && sent.octets.len() <= room {
                (sent.octets.clone(), range.end)
            } else {
                let end = sent.segment_end(&range, room, self.format)?;
                let segment = sent.segment(wire, range.start..end);
                (segment.encode(self.format), end - range.start)
            };
            let sdus = self.unconfirmed.ids(sent.sdus.clone());
            window.retransmitted(sn, submitted);
            let pdu =
                Pdu { octets, kind: PduKind::Data { sn, transmission: 2 + retx_count, polls: false, sdus } };
            return Some(self.submit_pdu(now, pdu, 0, stats));
        }
        if window.is_full() {
            return None;
        }
        let bounds = FieldBounds {
            room: room.checked_sub(self.format.sn.fixed_header())?,
            max_data: self.format.sn.max_data(),
            li: self.format.li,
        };
        let elements = self.stream.take(bounds)?;
        let data = elements.to_vec();
        let sn = window.end();
        let field = elements.field(&data);
        let amd = Amd { poll: false, sn: self.format.sn.bits().wire(sn), segment: None, data: field };
        let octets = amd.encode(self.format);
        let sent = SentPdu {
            octets: octets.clone(),
            header: amd.header(self.format),
            starts_sdu: amd.data.starts_sdu,
            ends_sdu: amd.data.ends_sdu,
            ends: amd.data.ends,
            sdus: self.unconfirmed.add(&elements.pieces),
        };
        let sdus = self.unconfirmed.ids(sent.sdus.clone());
        window.push(sent, elements.octets as u32, elements.octets as u32);
        let pdu = Pdu { octets, kind: PduKind::Data { sn, transmission: 1, polls: false, sdus } };
        Some(self.submit_pdu(now, pdu, elements.octets, stats))
    }

    /// Sets P if the PDU polls. `new_octets` of its octets had not been transmitted before.
    fn submit_pdu(&mut self, now: Instant, mut pdu: Pdu, new_octets: usize, stats: &mut AmStats) -> Pdu {
        if self.transmitter.submit(now, new_octets, !self.stream.is_empty(), stats) {
            pdu.octets[0] |= POLL;
            if let PduKind::Data { polls, .. } = &mut pdu.kind {
                *polls = true;
            }
        }
        pdu
    }

    pub(super) fn handle_status(
        &mut self,
        status: Status,
        events: &mut Vec<Event>,
        stats: &mut AmStats,
    ) -> Result<(), ReceiveError> {
        let unconfirmed = &mut self.unconfirmed;
        self.transmitter.handle_status(status, |change, pdu| match change {
            Change::Acknowledged => unconfirmed.acknowledge(pdu.sdus.clone(), events),
            Change::MaxRetx => events.extend(unconfirmed.max_retx(pdu)),
        })?;
        stats.statuses_received += 1;
        Ok(())
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, events: &mut Vec<Event>, stats: &mut AmStats) {
        let max_retx = self.transmitter.handle_deadline(now, !self.stream.is_empty(), stats);
        events.extend(max_retx.and_then(|pdu| self.unconfirmed.max_retx(pdu)));
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.transmitter.next_deadline()
    }
}

impl Unconfirmed {
    fn max_retx(&self, pdu: &SentPdu) -> Option<Event> {
        self.id(pdu.sdus.start).map(Event::MaxRetx)
    }
}

impl SentPdu {
    /// The end of the longest segment that begins with `range`, lies within it, and fits `room` octets.
    fn segment_end(&self, range: &Range<u32>, room: usize, format: AmFormat) -> Option<u32> {
        let inner = &self.ends[self.ends.partition_point(|end| *end <= range.start)..];
        let mut longest = range.start;
        // A segment with n Length Indicators contains at most n + 1 elements.
        for indicators in 0..=inner.len() {
            let header = format.sn.fixed_header() + SEGMENT_HEADER + format.li.extension(indicators);
            let Some(octets) = room.checked_sub(header) else { break };
            let element_end = inner.get(indicators).map_or(range.end, |end| range.end.min(*end));
            let end = element_end.min(range.start.saturating_add(octets as u32));
            longest = longest.max(end);
            if end < element_end || element_end == range.end {
                break;
            }
        }
        (longest > range.start).then_some(longest)
    }

    /// An AMD PDU segment (§6.2.1.5). FI, E and LI describe the segment.
    fn segment(&self, sn: u32, range: Range<u32>) -> Amd<'_> {
        let data = &self.octets[self.header..];
        let is_last = range.end as usize == data.len();
        let is_end = |offset: u32| self.ends.binary_search(&offset).is_ok();
        let inner = self.ends.iter().filter(|end| range.start < **end && **end < range.end);
        let field = DataField {
            starts_sdu: if range.start == 0 { self.starts_sdu } else { is_end(range.start) },
            ends_sdu: if is_last { self.ends_sdu } else { is_end(range.end) },
            ends: inner.map(|end| end - range.start).collect(),
            octets: &data[range.start as usize..range.end as usize],
        };
        let segment = Some(SegmentFields { is_last, so: range.start });
        Amd { poll: false, sn, segment, data: field }
    }
}
