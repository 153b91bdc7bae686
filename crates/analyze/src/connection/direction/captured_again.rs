//! Detects data that the capture contains twice with different packet boundaries: a large send and the
//! segments into which a device splits it (TSO, GSO), or segments and the packet into which a device merges
//! them (GRO).

use std::ops::Range;

use aircaptures::packet::Packet;
use airwire::segment::Flags;

use super::{DirectionAnalysis, PacketContext};
use crate::connection::copies::{COPY_WITHIN, unidentified_limit};

/// Shortest payload of the segments into which a device splits a large send.
const SHORTEST_PIECE: u64 = 256;
/// Nanoseconds within which the same packet is captured again.
const SAME_PACKET: i64 = 1_000_000;

/// How a packet relates to the segments in flight that contain its data.
struct Repeated {
    /// The send time of the oldest of these segments.
    sent_at: i64,
    /// Whether one of these segments has the packet's timestamp.
    same_timestamp: bool,
    /// Whether the first of these segments has the packet's boundaries.
    same_range: bool,
    /// The longest of these segments.
    longest: u64,
    /// Whether the IP identification continues the identification of the first segment. `None` if
    /// identifications are not in use.
    same_id: Option<bool>,
}

impl DirectionAnalysis {
    /// Returns whether the packet was captured before with other boundaries. It must have payload.
    pub(in crate::connection) fn is_captured_again(
        &mut self,
        context: &PacketContext,
        packet: &Packet,
    ) -> bool {
        let Some(start) = self.offset(packet.seq) else { return false };
        let range = start..start + packet.seq_len();
        if range.start >= self.flight.max || packet.flags.contains(Flags::SYN) {
            return false;
        }
        let Some(repeated) = self.repeated(packet, &range) else { return false };
        if !repeated.same_timestamp {
            return false;
        }
        // A packet that is longer than the segments on the path was split or merged by a device. Others may be
        // retransmissions with other boundaries, for example after an ICMP error.
        let longest = repeated.longest.max(u64::from(packet.len));
        let by_device = longest > u64::from(self.path_segment());
        let limit = match repeated.same_id {
            Some(true) if repeated.same_range => SAME_PACKET,
            Some(true) => COPY_WITHIN,
            Some(false) if !by_device || repeated.same_range => return false,
            _ => unidentified_limit(context.round_trip),
        };
        if context.at - repeated.sent_at > limit {
            return false;
        }
        if repeated.longest > u64::from(packet.len) {
            self.sizes.piece = self.sizes.piece.max(packet.len.min(u32::from(u16::MAX)) as u16);
        }
        true
    }

    /// Compares the packet with the segments in flight, or returns `None` if some of its data is new.
    fn repeated(&mut self, packet: &Packet, range: &Range<u64>) -> Option<Repeated> {
        let tsval = packet.options.timestamps.map_or(0, |timestamps| timestamps.val);
        let uses_ids = self.ip_ids.may_identify();
        let anomalies = self.anomalies.get();
        let mut next = range.start.max(self.una());
        let mut repeated: Option<Repeated> = None;
        for segment in self.flight.overlapping(range) {
            if segment.start > next || segment.probe {
                return None;
            }
            // The last retransmission may have contained only a part of the segment.
            let part = segment.start.max(range.start)..segment.end.min(range.end);
            if segment.times > 1 && !anomalies.is_some_and(|anomalies| anomalies.has_resent(&part)) {
                return None;
            }
            next = segment.end;
            let same_timestamp = segment.last_tsval == tsval;
            let len = segment.end - segment.start;
            if let Some(repeated) = &mut repeated {
                repeated.sent_at = repeated.sent_at.min(segment.last_at);
                repeated.same_timestamp |= same_timestamp;
                repeated.longest = repeated.longest.max(len);
                continue;
            }
            let same_id = packet.ip_id.zip(segment.ip_id).filter(|(id, other)| *id != 0 && *other != 0);
            let same_id = same_id.filter(|_| uses_ids).map(|(id, other)| {
                // A device increments the identification from piece to piece.
                let pieces = range.start.saturating_sub(segment.start).div_ceil(SHORTEST_PIECE);
                u64::from(id.wrapping_sub(other)) <= pieces
            });
            repeated = Some(Repeated {
                sent_at: segment.last_at,
                same_timestamp,
                same_range: (segment.start, segment.end) == (range.start, range.end),
                longest: len,
                same_id,
            });
        }
        repeated.filter(|_| next >= range.end)
    }
}
