//! Detects packets that are captured twice, because the network duplicated them or because of the capture
//! setup: mirror ports, both sides of a router, all interfaces of a host.

use aircaptures::packet::Packet;
use airwire::segment::Flags;

use crate::compact::heap_of_vec;
use crate::fingerprint::fingerprint;

/// Number of recent packets that are compared.
const REMEMBERED: usize = 4;
/// Number of remembered packets of a connection that contains copies. Other packets may lie between a packet
/// and its copy.
const REMEMBERED_WITH_COPIES: usize = 64;
/// Nanoseconds within which the copy of a packet follows it.
pub(super) const COPY_WITHIN: i64 = 100_000_000;
/// The limits for packets without an IP identification, which would distinguish a retransmission. A
/// retransmission follows the original after at least a round trip.
const UNIDENTIFIED_COPY_WITHIN: [i64; 2] = [50_000, 1_000_000];
/// Number of packets whose copies may not have followed yet.
const EXPECTED_COPIES: u64 = 16;
/// If this number of packets in succession have the same IP identification, it does not identify packets.
const CONSTANT_IDS: u8 = 2;

/// Returns the nanoseconds within which a packet with data but without an IP identification may be a copy.
pub(super) fn unidentified_limit(round_trip: Option<i64>) -> i64 {
    let [min, max] = UNIDENTIFIED_COPY_WITHIN;
    (round_trip.unwrap_or(0) / 2).clamp(min, max)
}

/// The most recent packets of one end.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentPackets {
    packets: [Seen; REMEMBERED],
    next: u8,
    /// Number of packets in succession with the identification of the last packet.
    same_ids: u8,
    last_id: u16,
}

/// State of a connection that contains copies.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    /// The most recent packets of each end.
    recent: [Ring; 2],
    /// Number of copies, and of other packets whose copies would have been recognised.
    copies: u32,
    others: u32,
    /// Nanoseconds from the last packet with a copy to the copy.
    delay: i64,
}

#[derive(Clone, Debug, Default)]
struct Ring {
    packets: Vec<Seen>,
    next: usize,
}

impl Ring {
    fn push(&mut self, seen: Seen) {
        if self.packets.len() < REMEMBERED_WITH_COPIES {
            self.packets.push(seen);
        } else {
            self.packets[self.next] = seen;
            self.next = (self.next + 1) % REMEMBERED_WITH_COPIES;
        }
    }
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

    /// If `self` is a copy of an earlier packet, returns the nanoseconds since that packet.
    fn delay_after(self, earlier: Self) -> Option<i64> {
        let passed = self.0.wrapping_sub(earlier.0) & Self::TIME;
        ((self.0 ^ earlier.0) & !Self::TIME == 0).then(|| passed.cast_signed() * 1000)
    }
}

impl RecentPackets {
    /// Returns the time since the original if the packet of end `from` is a copy. `copies` is present if the
    /// connection contains copies.
    pub(super) fn copy_delay(
        &mut self,
        at: i64,
        packet: &Packet,
        from: usize,
        mut copies: Option<&mut Copies>,
        round_trip: Option<i64>,
    ) -> Option<i64> {
        let identified = packet.ip_id.is_some_and(|id| id != 0) && self.same_ids < CONSTANT_IDS;
        // Without an identification, two distinct duplicate ACKs look the same. They are compared only if all
        // other packets of the connection are captured twice.
        let comparable = identified || packet.seq_len() > 0;
        let limit = match () {
            _ if identified || packet.flags.contains(Flags::SYN) => COPY_WITHIN,
            _ if comparable => unidentified_limit(round_trip),
            _ => copies.as_deref().map_or(-1, Copies::ack_limit),
        };
        let seen = Seen::new(fingerprint(packet, packet.flags), at);
        let more = copies.as_deref_mut().map(|copies| &mut copies.recent[from].packets[..]);
        let mut found = None;
        for earlier in self.packets.iter_mut().chain(more.into_iter().flatten()) {
            if let Some(delay) = seen.delay_after(*earlier).filter(|delay| *delay <= limit) {
                found = Some(delay);
                if comparable {
                    break;
                }
                // The next packet that looks the same is another duplicate ACK.
                *earlier = Seen::default();
            }
        }
        if found.is_some() {
            return found;
        }
        self.remember(seen, packet.ip_id);
        if let Some(copies) = copies {
            copies.recent[from].push(seen);
            copies.others = copies.others.saturating_add(u32::from(comparable));
        }
        None
    }

    fn remember(&mut self, seen: Seen, id: Option<u16>) {
        self.packets[usize::from(self.next)] = seen;
        self.next = (self.next + 1) % REMEMBERED as u8;
        let id = id.unwrap_or(0);
        self.same_ids = if id == self.last_id { self.same_ids.saturating_add(1) } else { 0 };
        self.last_id = id;
    }
}

impl Copies {
    /// Records a copy that followed its original after `delay` nanoseconds.
    pub(super) fn add(&mut self, delay: i64) {
        self.copies = self.copies.saturating_add(1);
        self.delay = delay;
    }

    /// Returns the nanoseconds within which a pure ACK without an IP identification may be a copy.
    fn ack_limit(&self) -> i64 {
        // The copies of the last packets may follow.
        let most_are_copied = u64::from(self.copies) * 3 + EXPECTED_COPIES >= u64::from(self.others);
        if most_are_copied { 2 * self.delay + UNIDENTIFIED_COPY_WITHIN[0] } else { -1 }
    }

    pub(super) fn heap(&self) -> usize {
        self.recent.iter().map(|recent| heap_of_vec::<Seen>(recent.packets.capacity())).sum()
    }
}
