//! Packets that were damaged on their way. A receiver drops them, so they are no packets of a connection.
//!
//! A checksum that does not fit is no proof: on the sending host a capture is made before the device has filled it in, and
//! some programs that cut packets short write down the short length. So it counts for damage only where almost
//! everything else from the same address is whole.

use std::collections::BTreeMap;
use std::net::IpAddr;

use aircaptures::ip::Found;
use aircaptures::problem::Problem;

/// Addresses that are told apart. A host that captures what it sends is among the first.
const MOST: usize = 4096;
/// Of what an address sends, one packet in so many may be damaged.
const ONE_IN: u64 = 5;

/// What was whole so far.
#[derive(Debug, Default)]
pub(crate) struct Damage {
    by_source: BTreeMap<IpAddr, Seen>,
    all: Seen,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    packets: u64,
    flawed: u64,
}

impl Seen {
    fn note(&mut self, flawed: bool) {
        self.packets += 1;
        self.flawed += u64::from(flawed);
    }

    fn is_mostly_whole(self) -> bool {
        self.flawed * ONE_IN < self.packets
    }
}

impl Damage {
    /// What counts of what was found in a frame.
    pub(crate) fn judge(&mut self, found: Found) -> Found {
        let (packet, flaw) = match &found {
            Found::Tcp(packet) => (packet, None),
            Found::Flawed(packet, flaw @ (Problem::Checksum | Problem::BeyondFrame)) => (packet, Some(*flaw)),
            _ => return found,
        };
        let source = packet.src.ip();
        self.all.note(flaw.is_some());
        let of_source = if self.by_source.len() < MOST {
            Some(self.by_source.entry(source).or_default())
        } else {
            self.by_source.get_mut(&source)
        };
        // An address of which this is the first packet may be one that the damage has made.
        let mut seen = self.all;
        if let Some(of_source) = of_source {
            of_source.note(flaw.is_some());
            if of_source.packets > 1 {
                seen = *of_source;
            }
        }
        match (flaw, found) {
            (Some(_), _) if seen.is_mostly_whole() => Found::Nothing(Problem::Corrupted),
            (Some(Problem::Checksum), Found::Flawed(packet, _)) => Found::Tcp(packet),
            (_, found) => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use airtcp_testkit::frames::{ACK, Tcp, v4};

    use super::*;
    use aircaptures::ip::{Context, parse};
    use aircaptures::packet::Timestamp;

    /// One from this host, with a flaw or without.
    fn packet(host: u8, flaw: Option<Problem>) -> Found {
        let octets = Tcp::new(v4(host, 1000), v4(9, 80), ACK, 1, 1, 10).packet();
        let context = Context { number: 1, at: Timestamp(0), on_wire: octets.len() };
        match (parse(context, &octets), flaw) {
            (Found::Tcp(packet), Some(flaw)) => Found::Flawed(packet, flaw),
            (found, _) => found,
        }
    }

    fn judged(damage: &mut Damage, host: u8, flaw: Problem) -> Option<Problem> {
        match damage.judge(packet(host, Some(flaw))) {
            Found::Tcp(_) => None,
            Found::Flawed(_, problem) | Found::Nothing(problem) => Some(problem),
            found => panic!("{found:?}"),
        }
    }

    #[test]
    fn one_in_five_may_be_damaged() {
        for flaw in [Problem::Checksum, Problem::BeyondFrame] {
            let mut damage = Damage::default();
            let whole = |damage: &mut Damage| assert!(matches!(damage.judge(packet(1, None)), Found::Tcp(_)));
            for _ in 0..4 {
                whole(&mut damage);
            }
            let counts = (flaw == Problem::BeyondFrame).then_some(flaw);
            assert_eq!(judged(&mut damage, 1, flaw), counts, "one of five");
            for _ in 0..5 {
                whole(&mut damage);
            }
            assert_eq!(judged(&mut damage, 1, flaw), Some(Problem::Corrupted), "two of eleven");
            assert_eq!(judged(&mut damage, 1, flaw), counts, "three of twelve");
        }
    }

    /// Where a device fills in checksums, all that its host sends is wrong, and what it hears is right.
    #[test]
    fn what_a_device_will_fill_in_counts() {
        let mut damage = Damage::default();
        for _ in 0..1000 {
            assert!(matches!(damage.judge(packet(2, None)), Found::Tcp(_)));
        }
        // Its very first packet looks like one whose address was damaged.
        assert_eq!(judged(&mut damage, 1, Problem::Checksum), Some(Problem::Corrupted));
        for _ in 0..100 {
            assert_eq!(judged(&mut damage, 1, Problem::Checksum), None);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut damage = Damage::default();
        for word in 0..2 * MOST as u32 {
            let Found::Tcp(mut read) = packet(1, None) else { panic!("it is whole") };
            read.src.set_ip(std::net::Ipv4Addr::from(word).into());
            damage.judge(Found::Tcp(read));
        }
        assert_eq!((damage.by_source.len(), damage.all.packets), (MOST, 2 * MOST as u64));
        assert_eq!(judged(&mut damage, 200, Problem::Checksum), Some(Problem::Corrupted));
    }
}
