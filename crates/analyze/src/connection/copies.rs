//! Detects packets that are captured twice, because the network duplicated them or because of the capture
//! setup.

use aircaptures::packet::Packet;

/// Number of recent packets that are compared.
const REMEMBERED: usize = 4;
/// Nanoseconds within which the copy of a packet follows it.
const MOMENT: i64 = 100_000_000;
/// The same for packets without an IP identification, which would distinguish a retransmission.
const INSTANT: i64 = 50_000;

/// The most recent packets of one end.
#[derive(Debug, Default)]
pub(super) struct Copies {
    recent: [Seen; REMEMBERED],
    next: u8,
}

/// A fingerprint in the upper bits, and the time in microseconds in the lower bits. It is compact because
/// there may be 100,000 connections.
#[derive(Clone, Copy, Debug, Default)]
struct Seen(u64);

impl Seen {
    /// Mask of the time, which wraps after about 17 s. Older packets are irrelevant.
    const TIME: u64 = (1 << 24) - 1;

    fn new(fingerprint: u64, at: i64) -> Self {
        Self(fingerprint & !Self::TIME | (at / 1000).cast_unsigned() & Self::TIME)
    }

    /// Returns whether `self` is a copy of an earlier packet, at most `moment` nanoseconds later.
    fn is_copy_of(self, earlier: Self, moment: i64) -> bool {
        let passed = self.0.wrapping_sub(earlier.0) & Self::TIME;
        (self.0 ^ earlier.0) & !Self::TIME == 0 && passed.cast_signed() * 1000 <= moment
    }
}

impl Copies {
    pub(super) fn is_copy(&mut self, at: i64, packet: &Packet) -> bool {
        let identified = packet.ip_id.is_some_and(|id| id != 0);
        // Without an identification, two distinct duplicate ACKs would look the same.
        let comparable = identified || packet.len > 0;
        let moment = if identified { MOMENT } else { INSTANT };
        let seen = Seen::new(fingerprint(packet), at);
        if comparable && self.recent.iter().any(|earlier| seen.is_copy_of(*earlier, moment)) {
            return true;
        }
        self.recent[usize::from(self.next)] = seen;
        self.next = (self.next + 1) % REMEMBERED as u8;
        false
    }
}

/// Returns a hash of the fields that differ in a retransmission or in another ACK. Its highest bit is always
/// set.
fn fingerprint(packet: &Packet) -> u64 {
    let timestamps = packet.options.timestamps.unwrap_or_default();
    let words = [
        u64::from(packet.seq.0) << 32 | u64::from(packet.ack.map_or(0, |ack| ack.0)),
        u64::from(packet.len) << 32 | u64::from(packet.window) << 16 | u64::from(packet.flags.0),
        u64::from(timestamps.val) << 32 | u64::from(timestamps.ecr),
        u64::from(packet.ip_id.unwrap_or(0)),
    ];
    let blocks = packet.options.sack.as_slice().iter();
    let blocks = blocks.map(|(left, right)| u64::from(left.0) << 32 | u64::from(right.0));
    // FNV-1a over 64-bit words, with a shift to mix the upper bits in.
    let hash = words.into_iter().chain(blocks).fold(0xcbf2_9ce4_8422_2325_u64, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        mixed ^ mixed >> 29
    });
    hash | 1 << 63
}
