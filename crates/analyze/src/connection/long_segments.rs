//! Detects path MTU black holes (RFC 2923 §2.1): long segments never arrive, but shorter ones do.

use super::compact::ALLOCATOR_OVERHEAD;
use super::findings::{BlackHole, PathMtuFindings};

/// Number of transmissions of a segment after which its length is suspected.
const SUSPECT: u32 = 3;
/// Payload that fits into every path: 576 bytes without headers and options (RFC 791 §3.1).
const FITS: u16 = 512;

/// The state of one direction. Lengths are bytes of payload, limited to 65,535.
#[derive(Debug, Default)]
pub(super) struct LongSegments {
    /// The length of the longest acknowledged segment.
    arrived: u16,
    /// The length of the first longer segment that is not acknowledged yet, or 0.
    len: u16,
    /// The lower 32 bits of the offset after that segment.
    end: u32,
    /// Present after a retransmission or an ICMP error.
    more: Option<Box<More>>,
}

#[derive(Debug, Default)]
struct More {
    /// The first retransmitted segment that is longer than all acknowledged segments and not acknowledged
    /// yet.
    waiting: Option<Waiting>,
    /// The first such segment whose data arrived only in shorter segments.
    hole: Option<Waiting>,
    icmp: Option<Icmp>,
}

/// The MTU that ICMP reported, and the number of longer packets sent afterwards.
#[derive(Debug, Default)]
struct Icmp {
    mtu: Option<u32>,
    above: u32,
}

#[derive(Debug)]
struct Waiting {
    start: u64,
    len: u16,
    times: u32,
    frame: u64,
    /// Whether its data was retransmitted in shorter segments.
    pieces: bool,
    /// Whether a packet of the other end arrived after the retransmission.
    heard: bool,
}

impl LongSegments {
    /// Records that the sender sends `len` bytes at `start`. `is_new` means that some of the data is new.
    /// `headers` is the length of the IP and TCP headers.
    pub(super) fn sent(&mut self, start: u64, len: u32, is_new: bool, frame: u64, headers: u32) {
        if let Some(icmp) = self.more.as_mut().and_then(|more| more.icmp.as_mut())
            && icmp.mtu.is_some_and(|mtu| len + headers > mtu)
        {
            icmp.above = icmp.above.saturating_add(1);
        }
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        if is_new {
            if len > self.arrived && self.len == 0 {
                (self.len, self.end) = (len, (start + u64::from(len)) as u32);
            }
            return;
        }
        let waiting = self.more.as_mut().and_then(|more| more.waiting.as_mut());
        match waiting {
            None if len > self.arrived => {
                let waiting = Waiting { start, len, times: 2, frame, pieces: false, heard: false };
                self.more.get_or_insert_default().waiting = Some(waiting);
                // From now on, `waiting` tracks its arrival.
                self.len = 0;
            }
            Some(waiting) if start == waiting.start && len >= waiting.len => waiting.times += 1,
            Some(waiting) if (waiting.start..waiting.end()).contains(&start) => waiting.pieces = true,
            _ => {}
        }
    }

    /// Records that the receiver acknowledges everything before `una`.
    pub(super) fn acked(&mut self, una: u64) {
        if self.len > 0 && (una as u32).wrapping_sub(self.end) < 1 << 31 {
            self.arrived = self.arrived.max(std::mem::take(&mut self.len));
        }
        let Some(more) = &mut self.more else { return };
        let Some(waiting) = &mut more.waiting else { return };
        waiting.heard = true;
        if una < waiting.end() {
            return;
        }
        let Some(waiting) = more.waiting.take() else { return };
        if !waiting.pieces {
            self.arrived = self.arrived.max(waiting.len);
        } else if waiting.is_suspect() {
            more.hole.get_or_insert(waiting);
        }
        if more.hole.is_none() && more.icmp.is_none() {
            self.more = None;
        }
    }

    /// Records an ICMP error: a packet was too long for a link with this MTU.
    pub(super) fn too_big(&mut self, mtu: Option<u32>) {
        let icmp = self.more.get_or_insert_default().icmp.get_or_insert_default();
        icmp.mtu = icmp.mtu.into_iter().chain(mtu).min();
    }

    /// Returns the heap memory in bytes.
    pub(super) fn heap(&self) -> usize {
        self.more.as_ref().map_or(0, |_| size_of::<More>() + ALLOCATOR_OVERHEAD)
    }

    /// Returns the results, or `None` if there are none. Without ACKs in the capture, lost segments cannot be
    /// detected.
    pub(super) fn findings(self, has_acks: bool) -> Option<PathMtuFindings> {
        let arrived = self.arrived;
        let More { waiting, hole, icmp } = *self.more?;
        // A length that arrived as a whole later is not too long for the path.
        let hole = hole
            .filter(|hole| hole.len > arrived)
            .or_else(|| waiting.filter(Waiting::is_suspect))
            .filter(|_| has_acks);
        if hole.is_none() && icmp.is_none() {
            return None;
        }
        let black_hole = match &hole {
            None => BlackHole::No,
            Some(hole) if hole.heard || icmp.is_some() => BlackHole::Likely,
            // If nothing was received from the other end, it may have disappeared.
            Some(_) => BlackHole::Possible,
        };
        Some(PathMtuFindings {
            black_hole,
            lost_segment_bytes: hole.as_ref().map(|hole| u64::from(hole.len)),
            lost_segment_frame: hole.as_ref().map(|hole| hole.frame),
            lost_segment_times: hole.as_ref().map_or(0, |hole| u64::from(hole.times)),
            lost_segment_split: hole.as_ref().is_some_and(|hole| hole.pieces),
            longest_acked_bytes: u64::from(arrived),
            icmp_mtu: icmp.as_ref().and_then(|icmp| icmp.mtu),
            above_icmp_mtu: icmp.map_or(0, |icmp| u64::from(icmp.above)),
        })
    }
}

impl Waiting {
    fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    fn is_suspect(&self) -> bool {
        self.times >= SUSPECT && self.len > FITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that arrives, and a segment of 1448 bytes that never does.
    fn stuck(segments: &mut LongSegments) {
        segments.sent(1, 200, true, 4, 40);
        segments.acked(201);
        segments.sent(201, 1448, true, 5, 40);
        for _ in 0..3 {
            segments.sent(201, 1448, false, 6, 40);
        }
    }

    #[test]
    fn repeatedly_lost_long_segment_is_possible_black_hole() {
        let mut segments = LongSegments::default();
        stuck(&mut segments);
        let findings = segments.findings(true).unwrap();
        assert_eq!(findings.black_hole, BlackHole::Possible);
        assert_eq!((findings.lost_segment_bytes, findings.lost_segment_times), (Some(1448), 4));
        assert_eq!(findings.longest_acked_bytes, 200);
    }

    #[test]
    fn ack_or_shorter_segments_make_black_hole_likely() {
        let mut heard = LongSegments::default();
        stuck(&mut heard);
        heard.acked(201);
        assert_eq!(heard.findings(true).unwrap().black_hole, BlackHole::Likely);
        let mut pieces = LongSegments::default();
        stuck(&mut pieces);
        pieces.sent(201, 1024, false, 9, 40);
        pieces.sent(1225, 424, false, 10, 40);
        pieces.acked(1649);
        let findings = pieces.findings(true).unwrap();
        assert_eq!((findings.black_hole, findings.lost_segment_split), (BlackHole::Likely, true));
    }

    #[test]
    fn black_hole_is_not_reported_without_acks() {
        let mut segments = LongSegments::default();
        stuck(&mut segments);
        assert_eq!(segments.findings(false), None);
    }

    #[test]
    fn acknowledged_long_segment_rules_out_black_hole() {
        let mut segments = LongSegments::default();
        stuck(&mut segments);
        segments.acked(1649);
        segments.sent(1649, 1448, true, 11, 40);
        for _ in 0..5 {
            segments.sent(1649, 1448, false, 12, 40);
        }
        assert_eq!(segments.findings(true), None);
    }
}
