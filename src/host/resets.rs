//! The limit on RSTs that answer segments without a connection.

use std::collections::BTreeMap;
use std::net::IpAddr;

use airwire::time::Instant;

use super::admission::source_of;
use super::keyed_hash;

/// Maximum number of sources that get RSTs within one second. It bounds the memory.
const MAX_SOURCES: usize = 16_384;

/// The RSTs sent in the current second, counted by source. A forged segment causes a RST to the address that
/// it names, unless that address has a connection with these ports. A shared count would show one source
/// which connections another source has.
#[derive(Debug, Default)]
pub(super) struct Resets {
    second: u64,
    /// Maximum number of sources in this second. It varies between half and all of [`MAX_SOURCES`], so that
    /// an attacker who fills the table cannot find out whether the table contains another source.
    max_sources: usize,
    sent: BTreeMap<IpAddr, u32>,
}

impl Resets {
    /// Counts a RST to `peer`. Returns false if its source has received `limit` in this second, or if too
    /// many sources have received any.
    pub(super) fn permits(&mut self, now: Instant, peer: IpAddr, limit: u32, seed: u64) -> bool {
        // Second 0 must differ from the initial value.
        let second = 1 + now.as_nanos() / 1_000_000_000;
        if self.second != second {
            let reduction = keyed_hash(seed, &("sources of resets", second)) % (MAX_SOURCES as u64 / 2);
            *self = Self { second, max_sources: MAX_SOURCES - reduction as usize, sent: BTreeMap::new() };
        }
        let source = source_of(peer);
        if self.sent.len() >= self.max_sources && !self.sent.contains_key(&source) {
            return false;
        }
        let sent = self.sent.entry(source).or_default();
        let is_permitted = *sent < limit;
        *sent += u32::from(is_permitted);
        is_permitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 7;

    fn peer(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn resets_are_counted_per_source() {
        let mut resets = Resets::default();
        let mut count = |now, peer| (0..500).filter(|_| resets.permits(now, peer, 100, SEED)).count();
        let v6 = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!([count(Instant::ZERO, peer(1)), count(Instant::ZERO, peer(1))], [100, 0]);
        assert_eq!(count(Instant::ZERO, peer(2)), 100);
        assert_eq!(count(Instant::ZERO, v6("2001:db8::1")), 100);
        assert_eq!(count(Instant::ZERO, v6("2001:db8::2")), 0, "the same /64");
        assert_eq!(count(Instant::ZERO, v6("2001:db8:0:1::1")), 100);
        assert_eq!(count(Instant::from_secs(1), peer(1)), 100, "the next second");
    }

    #[test]
    fn number_of_sources_is_bounded_and_varies() {
        let mut resets = Resets::default();
        let mut seen: Vec<usize> = vec![];
        for second in 0..10 {
            let now = Instant::from_secs(second);
            let sources = (0..20_000).filter(|number| resets.permits(now, peer(*number), 100, SEED)).count();
            assert_eq!(sources, resets.sent.len());
            assert!(resets.permits(now, peer(0), 100, SEED), "a known source is not affected");
            assert!(!resets.permits(now, peer(20_000), 100, SEED), "the table is full");
            seen.push(sources);
        }
        assert!(seen.iter().all(|count| (MAX_SOURCES / 2..=MAX_SOURCES).contains(count)), "{seen:?}");
        seen.dedup();
        assert_eq!(seen.len(), 10, "the limit differs from second to second");
    }
}
