//! The rates of connections during a capture on an interface.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airtcp_analyze::connections::Followed;
use airwire::time::Instant;

/// A connection that carried data since the last update, or waits for ACKs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Busy {
    pub(super) number: u64,
    pub(super) ends: [SocketAddr; 2],
    /// The end that sent more data since the last update: an index in `ends`.
    pub(super) from: usize,
    pub(super) bit_per_s: f64,
}

/// Measures the rates of the connections between two updates.
pub(super) struct Rates {
    /// The time of the last update.
    at: Instant,
    /// The data of each open connection at the last update.
    bytes: BTreeMap<u64, [u64; 2]>,
}

impl Rates {
    pub(super) fn new(now: Instant) -> Self {
        Self { at: now, bytes: BTreeMap::new() }
    }

    /// Returns the connections with data since the last update, or with outstanding data, fastest first, and the
    /// number of all.
    pub(super) fn update(
        &mut self,
        now: Instant,
        followed: impl Iterator<Item = Followed>,
    ) -> (Vec<Busy>, usize) {
        let seconds = (now - std::mem::replace(&mut self.at, now)).as_secs_f64();
        let mut bytes = BTreeMap::new();
        let mut busy = Vec::new();
        for connection in followed {
            bytes.insert(connection.number, connection.bytes);
            let before = self.bytes.get(&connection.number).copied().unwrap_or_default();
            let new = [0, 1].map(|end: usize| connection.bytes[end].saturating_sub(before[end]));
            let from = usize::from(new[1] > new[0]);
            if (new[from] > 0 || connection.has_outstanding) && seconds > 0.0 {
                let bit_per_s = new[from] as f64 * 8.0 / seconds;
                busy.push(Busy { number: connection.number, ends: connection.ends, from, bit_per_s });
            }
        }
        busy.sort_unstable_by(|a, b| b.bit_per_s.total_cmp(&a.bit_per_s).then(a.number.cmp(&b.number)));
        let open = bytes.len();
        self.bytes = bytes;
        (busy, open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(number: u64, bytes: [u64; 2]) -> Followed {
        let ends = ["10.0.0.1:4000", "10.0.0.2:80"].map(|end| end.parse().unwrap());
        Followed { number, ends, bytes, has_outstanding: number == 2 }
    }

    #[test]
    fn rates_cover_time_between_updates() {
        let mut rates = Rates::new(Instant::from_secs(9));
        let first = [followed(0, [100, 5_000]), followed(1, [0, 0]), followed(2, [7, 7])];
        assert_eq!(rates.update(Instant::from_secs(10), first.into_iter()).1, 3);
        // Connection 1 has ended, connection 2 waits for an ACK, and connection 3 is new.
        let second = [followed(0, [100, 6_000]), followed(3, [4_000, 10]), followed(2, [7, 7])];
        let (busy, open) = rates.update(Instant::from_secs(12), second.into_iter());
        let seen: Vec<_> = busy.iter().map(|busy| (busy.number, busy.from, busy.bit_per_s)).collect();
        assert_eq!((seen, open), (vec![(3, 0, 16_000.0), (0, 1, 4_000.0), (2, 0, 0.0)], 3));
    }
}
