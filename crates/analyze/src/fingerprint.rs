//! Fingerprints of packets.

use aircaptures::packet::Packet;
use airwire::segment::Flags;

/// Returns a hash of the fields that routers do not change and that differ in a retransmission or in another
/// ACK. The caller selects the flags.
pub(crate) fn fingerprint(packet: &Packet, flags: Flags) -> u64 {
    let timestamps = packet.options.timestamps.unwrap_or_default();
    let words = [
        u64::from(packet.seq.0) << 32 | u64::from(packet.ack.map_or(0, |ack| ack.0)),
        u64::from(packet.len) << 32 | u64::from(packet.window) << 16 | u64::from(flags.0),
        u64::from(timestamps.val) << 32 | u64::from(timestamps.ecr),
        u64::from(packet.ip_id.unwrap_or(0)),
    ];
    let blocks = packet.options.sack.as_slice().iter();
    let blocks = blocks.map(|(left, right)| u64::from(left.0) << 32 | u64::from(right.0));
    hash(0, words.into_iter().chain(blocks))
}

/// Returns a hash of words: FNV-1a over 64-bit words, with a shift to mix the upper bits in.
pub(crate) fn hash(seed: u64, words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        mixed ^ mixed >> 29
    })
}
