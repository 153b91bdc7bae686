//! Detects packets that are captured twice, because the network duplicated them or because of the capture
//! setup.

use aircaptures::packet::Packet;

use crate::fingerprint::fingerprint;

/// Number of recent packets that are compared.
const REMEMBERED: usize = 4;
/// Nanoseconds within which the copy of a packet follows it.
const COPY_WITHIN: i64 = 100_000_000;
/// The same for packets without an IP identification, which would distinguish a retransmission.
const COPY_WITHIN_WITHOUT_ID: i64 = 50_000;

/// The most recent packets of one end.
#[derive(Debug, Default)]
pub(super) struct RecentPackets {
    packets: [Seen; REMEMBERED],
    next: u8,
}

/// A fingerprint in the upper bits, and the time in microseconds in the lower bits. It is compact because
/// there may be 100,000 connections. The highest bit distinguishes it from the default.
#[derive(Clone, Copy, Debug, Default)]
struct Seen(u64);

impl Seen {
    /// Mask of the time, which wraps after about 17 s. Older packets are irrelevant.
    const TIME: u64 = (1 << 24) - 1;

    fn new(fingerprint: u64, at: i64) -> Self {
        Self(1 << 63 | fingerprint & !Self::TIME | (at / 1000).cast_unsigned() & Self::TIME)
    }

    /// Returns whether `self` is a copy of an earlier packet, at most `limit` nanoseconds later.
    fn is_copy_of(self, earlier: Self, limit: i64) -> bool {
        let passed = self.0.wrapping_sub(earlier.0) & Self::TIME;
        (self.0 ^ earlier.0) & !Self::TIME == 0 && passed.cast_signed() * 1000 <= limit
    }
}

impl RecentPackets {
    pub(super) fn is_copy(&mut self, at: i64, packet: &Packet) -> bool {
        let identified = packet.ip_id.is_some_and(|id| id != 0);
        // Without an identification, two distinct duplicate ACKs would look the same.
        let comparable = identified || packet.len > 0;
        let limit = if identified { COPY_WITHIN } else { COPY_WITHIN_WITHOUT_ID };
        let seen = Seen::new(fingerprint(packet, packet.flags), at);
        if comparable && self.packets.iter().any(|earlier| seen.is_copy_of(*earlier, limit)) {
            return true;
        }
        self.packets[usize::from(self.next)] = seen;
        self.next = (self.next + 1) % REMEMBERED as u8;
        false
    }
}
