//! Detects path MTU black holes (RFC 2923 §2.1): long segments never arrive, but shorter ones do.

use super::findings::{BlackHole, PathMtuFindings};
use crate::compact::ALLOCATOR_OVERHEAD;

/// Number of transmissions of a segment after which its length is suspected.
const MIN_TRANSMISSIONS: u32 = 3;
/// Payload that fits into every path: 576 bytes without headers and options (RFC 791 §3.1).
const FITS_EVERY_PATH: u16 = 512;

/// The state of one direction. Lengths are bytes of payload, limited to 65,535.
#[derive(Clone, Debug, Default)]
pub(super) struct PathMtu {
    /// The length of the longest acknowledged segment.
    longest_acked: u16,
    /// The length of the first longer segment that is not acknowledged yet, or 0.
    len: u16,
    /// The lower 32 bits of the offset after that segment.
    end: u32,
    /// Present after a retransmission or an ICMP error.
    details: Option<Box<Details>>,
}

#[derive(Clone, Debug, Default)]
struct Details {
    /// The first retransmitted segment that is longer than all acknowledged segments and not acknowledged
    /// yet.
    suspect: Option<Suspect>,
    /// The first such segment whose data arrived only in shorter segments.
    lost: Option<Suspect>,
    icmp: Option<Icmp>,
}

/// The MTU that ICMP reported, and the number of longer packets sent afterwards.
#[derive(Clone, Debug, Default)]
struct Icmp {
    mtu: Option<u32>,
    above: u32,
}

#[derive(Clone, Debug)]
struct Suspect {
    start: u64,
    len: u16,
    times: u32,
    frame: u64,
    /// Whether its data was retransmitted in shorter segments.
    split: bool,
    /// Whether a packet of the other end arrived after the retransmission.
    peer_responded: bool,
}

impl PathMtu {
    /// Records that the sender sends `len` bytes at `start`. `is_new` means that some of the data is new.
    /// `headers` is the length of the IP and TCP headers, or `None` if the packet is longer than any packet on
    /// the path, because a device splits or merges packets.
    pub(super) fn sent(&mut self, start: u64, len: u32, is_new: bool, frame: u64, headers: Option<u32>) {
        if let Some(icmp) = self.details.as_mut().and_then(|details| details.icmp.as_mut())
            && icmp.mtu.zip(headers).is_some_and(|(mtu, headers)| len + headers > mtu)
        {
            icmp.above = icmp.above.saturating_add(1);
        }
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        if is_new {
            if len > self.longest_acked && self.len == 0 {
                (self.len, self.end) = (len, (start + u64::from(len)) as u32);
            }
            return;
        }
        let suspect = self.details.as_mut().and_then(|details| details.suspect.as_mut());
        match suspect {
            None if len > self.longest_acked => self.suspect(start, len, frame),
            // A tail probe of the last segment precedes the retransmission of the first one by timeout.
            Some(suspect) if start < suspect.start && suspect.times == 2 && len >= suspect.len => {
                self.suspect(start, len, frame);
            }
            Some(suspect) if start == suspect.start && len >= suspect.len => suspect.times += 1,
            Some(suspect) if (suspect.start..suspect.end()).contains(&start) => suspect.split = true,
            _ => {}
        }
    }

    fn suspect(&mut self, start: u64, len: u16, frame: u64) {
        let suspect = Suspect { start, len, times: 2, frame, split: false, peer_responded: false };
        self.details.get_or_insert_default().suspect = Some(suspect);
        // From now on, `suspect` tracks its arrival.
        self.len = 0;
    }

    /// Records that the receiver acknowledges everything before `una`.
    pub(super) fn acked(&mut self, una: u64) {
        if self.len > 0 && (una as u32).wrapping_sub(self.end) < 1 << 31 {
            self.longest_acked = self.longest_acked.max(std::mem::take(&mut self.len));
        }
        let Some(details) = &mut self.details else { return };
        let Some(suspect) = &mut details.suspect else { return };
        suspect.peer_responded = true;
        if una < suspect.end() {
            return;
        }
        let Some(suspect) = details.suspect.take() else { return };
        if !suspect.split {
            self.longest_acked = self.longest_acked.max(suspect.len);
        } else if suspect.is_suspect() {
            details.lost.get_or_insert(suspect);
        }
        if details.lost.is_none() && details.icmp.is_none() {
            self.details = None;
        }
    }

    /// Records an ICMP error: a packet was too long for a link with this MTU.
    pub(super) fn too_big(&mut self, mtu: Option<u32>) {
        let icmp = self.details.get_or_insert_default().icmp.get_or_insert_default();
        icmp.mtu = icmp.mtu.into_iter().chain(mtu).min();
    }

    /// Returns the heap memory in bytes.
    pub(super) fn heap(&self) -> usize {
        self.details.as_ref().map_or(0, |_| size_of::<Details>() + ALLOCATOR_OVERHEAD)
    }

    /// Returns the results, or `None` if there are none. Without ACKs in the capture, lost segments cannot be
    /// detected.
    pub(super) fn findings(self, has_acks: bool) -> Option<PathMtuFindings> {
        let longest_acked = self.longest_acked;
        let Details { suspect, lost, icmp } = *self.details?;
        // A length that was acknowledged later is not too long for the path.
        let lost = lost
            .filter(|lost| lost.len > longest_acked)
            .or_else(|| suspect.filter(Suspect::is_suspect))
            .filter(|_| has_acks);
        if lost.is_none() && icmp.is_none() {
            return None;
        }
        let black_hole = match &lost {
            None => BlackHole::No,
            Some(lost) if lost.peer_responded || icmp.is_some() => BlackHole::Likely,
            // If nothing was received from the other end, it may have disappeared.
            Some(_) => BlackHole::Possible,
        };
        Some(PathMtuFindings {
            black_hole,
            lost_segment_bytes: lost.as_ref().map(|lost| u64::from(lost.len)),
            lost_segment_frame: lost.as_ref().map(|lost| lost.frame),
            lost_segment_times: lost.as_ref().map_or(0, |lost| u64::from(lost.times)),
            lost_segment_split: lost.as_ref().is_some_and(|lost| lost.split),
            longest_acked_bytes: u64::from(longest_acked),
            icmp_mtu: icmp.as_ref().and_then(|icmp| icmp.mtu),
            above_icmp_mtu: icmp.map_or(0, |icmp| u64::from(icmp.above)),
        })
    }
}

impl Suspect {
    fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    fn is_suspect(&self) -> bool {
        self.times >= MIN_TRANSMISSIONS && self.len > FITS_EVERY_PATH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that arrives, and a segment of 1448 bytes that never does.
    fn stuck(segments: &mut PathMtu) {
        segments.sent(1, 200, true, 4, Some(40));
        segments.acked(201);
        segments.sent(201, 1448, true, 5, Some(40));
        for _ in 0..3 {
            segments.sent(201, 1448, false, 6, Some(40));
        }
    }

    #[test]
    fn repeatedly_lost_long_segment_is_possible_black_hole() {
        let mut segments = PathMtu::default();
        stuck(&mut segments);
        let findings = segments.findings(true).unwrap();
        assert_eq!(findings.black_hole, BlackHole::Possible);
        assert_eq!((findings.lost_segment_bytes, findings.lost_segment_times), (Some(1448), 4));
        assert_eq!(findings.longest_acked_bytes, 200);
    }

    #[test]
    fn ack_or_shorter_segments_make_black_hole_likely() {
        let mut answered = PathMtu::default();
        stuck(&mut answered);
        answered.acked(201);
        assert_eq!(answered.findings(true).unwrap().black_hole, BlackHole::Likely);
        let mut split = PathMtu::default();
        stuck(&mut split);
        split.sent(201, 1024, false, 9, Some(40));
        split.sent(1225, 424, false, 10, Some(40));
        split.acked(1649);
        let findings = split.findings(true).unwrap();
        assert_eq!((findings.black_hole, findings.lost_segment_split), (BlackHole::Likely, true));
    }

    #[test]
    fn later_ack_of_same_length_excludes_black_hole() {
        let mut segments = PathMtu::default();
        stuck(&mut segments);
        segments.sent(201, 1024, false, 9, Some(40));
        segments.sent(1225, 424, false, 10, Some(40));
        segments.acked(1649);
        segments.sent(1649, 1448, true, 11, Some(40));
        segments.acked(3097);
        assert_eq!(segments.findings(true), None);
    }

    #[test]
    fn black_hole_is_not_reported_without_acks() {
        let mut segments = PathMtu::default();
        stuck(&mut segments);
        assert_eq!(segments.findings(false), None);
    }

    #[test]
    fn acknowledged_long_segment_rules_out_black_hole() {
        let mut segments = PathMtu::default();
        stuck(&mut segments);
        segments.acked(1649);
        segments.sent(1649, 1448, true, 11, Some(40));
        for _ in 0..5 {
            segments.sent(1649, 1448, false, 12, Some(40));
        }
        assert_eq!(segments.findings(true), None);
    }
}
