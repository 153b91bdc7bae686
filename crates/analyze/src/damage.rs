//! Detects packets that were damaged in transit. Receivers drop them, so they do not belong to a connection.
//!
//! A wrong checksum alone is not a proof of damage. On the sending host, the capture is made before the
//! device fills in the checksum. Programs that truncate packets may also adjust the length field. Therefore a
//! packet counts as damaged only if almost all other packets from its address are intact.

use std::collections::BTreeMap;
use std::net::IpAddr;

use aircaptures::ip::Found;
use aircaptures::problem::Problem;

/// Maximum number of addresses with separate counts. If a host captures its own packets, it is among the
/// first.
const MAX_SOURCES: usize = 4096;
/// Flawed packets count as damaged if fewer than one in this number of packets is flawed.
const ONE_IN: u64 = 5;

/// The numbers of intact and flawed packets so far.
#[derive(Debug, Default)]
pub(crate) struct Damage {
    by_source: BTreeMap<IpAddr, Counts>,
    all: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets: u64,
    flawed: u64,
}

impl Counts {
    fn add(&mut self, flawed: bool) {
        self.packets += 1;
        self.flawed += u64::from(flawed);
    }

    fn is_mostly_intact(self) -> bool {
        self.flawed * ONE_IN < self.packets
    }
}

impl Damage {
    /// Decides whether a flawed packet was damaged in transit, and converts it accordingly.
    pub(crate) fn judge(&mut self, found: Found) -> Found {
        let (packet, flaw) = match &found {
            Found::Tcp(packet) => (packet, None),
            Found::Flawed(packet, flaw @ (Problem::Checksum | Problem::BeyondFrame)) => (packet, Some(*flaw)),
            _ => return found,
        };
        let source = packet.src.ip();
        self.all.add(flaw.is_some());
        let of_source = if self.by_source.len() < MAX_SOURCES {
            Some(self.by_source.entry(source).or_default())
        } else {
            self.by_source.get_mut(&source)
        };
        // The first packet from an address may have a damaged address, so the totals decide.
        let mut counts = self.all;
        if let Some(of_source) = of_source {
            of_source.add(flaw.is_some());
            if of_source.packets > 1 {
                counts = *of_source;
            }
        }
        match (flaw, found) {
            (Some(_), _) if counts.is_mostly_intact() => Found::Unreadable(Problem::Corrupted),
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

    /// Returns a packet from this host, with or without a flaw.
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
            Found::Flawed(_, problem) | Found::Unreadable(problem) => Some(problem),
            found => panic!("{found:?}"),
        }
    }

    #[test]
    fn rare_flawed_packets_count_as_corrupted() {
        for flaw in [Problem::Checksum, Problem::BeyondFrame] {
            let mut damage = Damage::default();
            let judge_intact =
                |damage: &mut Damage| assert!(matches!(damage.judge(packet(1, None)), Found::Tcp(_)));
            for _ in 0..4 {
                judge_intact(&mut damage);
            }
            let expected = (flaw == Problem::BeyondFrame).then_some(flaw);
            assert_eq!(judged(&mut damage, 1, flaw), expected, "1 of 5 packets is flawed");
            for _ in 0..5 {
                judge_intact(&mut damage);
            }
            assert_eq!(judged(&mut damage, 1, flaw), Some(Problem::Corrupted), "2 of 11 packets are flawed");
            assert_eq!(judged(&mut damage, 1, flaw), expected, "3 of 12 packets are flawed");
        }
    }

    /// If a device fills in checksums, all packets that its host sends are wrong, and all that it receives
    /// are correct.
    #[test]
    fn offloaded_checksums_are_not_damage() {
        let mut damage = Damage::default();
        for _ in 0..1000 {
            assert!(matches!(damage.judge(packet(2, None)), Found::Tcp(_)));
        }
        // The first packet looks like a packet whose address was damaged.
        assert_eq!(judged(&mut damage, 1, Problem::Checksum), Some(Problem::Corrupted));
        for _ in 0..100 {
            assert_eq!(judged(&mut damage, 1, Problem::Checksum), None);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut damage = Damage::default();
        for word in 0..2 * MAX_SOURCES as u32 {
            let Found::Tcp(mut read) = packet(1, None) else { panic!("the packet is intact") };
            read.src.set_ip(std::net::Ipv4Addr::from(word).into());
            damage.judge(Found::Tcp(read));
        }
        assert_eq!((damage.by_source.len(), damage.all.packets), (MAX_SOURCES, 2 * MAX_SOURCES as u64));
        assert_eq!(judged(&mut damage, 200, Problem::Checksum), Some(Problem::Corrupted));
    }
}
