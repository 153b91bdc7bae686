//! One packet seen twice: the network made a copy, or the capture was made at two places at once.

use aircaptures::packet::Packet;

/// Packets among which a copy is looked for.
const REMEMBERED: usize = 4;
/// Nanoseconds within which the copy of a packet follows it.
const MOMENT: i64 = 100_000_000;
/// The same without an IP identification, which a retransmission would have different.
const INSTANT: i64 = 50_000;

/// The last packets of one end.
#[derive(Debug, Default)]
pub(super) struct Copies {
    recent: [Seen; REMEMBERED],
    next: u8,
}

/// A fingerprint, and below it the lower bits of the time in microseconds: there may be a hundred thousand connections.
#[derive(Clone, Copy, Debug, Default)]
struct Seen(u64);

impl Seen {
    /// Some 17 s: what is known is younger, or of no interest.
    const TIME: u64 = (1 << 24) - 1;

    fn new(fingerprint: u64, at: i64) -> Self {
        Self(fingerprint & !Self::TIME | (at / 1000).cast_unsigned() & Self::TIME)
    }

    /// Whether `self` is the same packet as an earlier one, which came at most `moment` nanoseconds before.
    fn is_copy_of(self, earlier: Self, moment: i64) -> bool {
        let passed = self.0.wrapping_sub(earlier.0) & Self::TIME;
        (self.0 ^ earlier.0) & !Self::TIME == 0 && passed.cast_signed() * 1000 <= moment
    }
}

impl Copies {
    pub(super) fn is_copy(&mut self, at: i64, packet: &Packet) -> bool {
        let identified = packet.ip_id.is_some_and(|id| id != 0);
        // Without identification two duplicate ACKs look the same, but are two.
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

/// A hash of everything that differs in a retransmission or in another ACK. Its upper bits are never all 0.
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
    // FNV-1a over words of 64 bits, with a shift to mix the upper bits in.
    let hash = words.into_iter().chain(blocks).fold(0xcbf2_9ce4_8422_2325_u64, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        mixed ^ mixed >> 29
    });
    hash | 1 << 63
}
