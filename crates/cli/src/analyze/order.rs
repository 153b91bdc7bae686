//! `--sort`: the sort keys, and a bounded collection of the connections that rank first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use airtcp_analyze::ConnectionFindings;
use airtcp_analyze::connection::findings::DirectionFindings;
use clap::ValueEnum;

/// The key by which connections are sorted: largest value first, except for start times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SortKey {
    /// Time of the first packet, earliest first
    Start,
    /// Time from the first packet to the last
    Duration,
    /// Bytes of data in both directions, including retransmissions
    Bytes,
    /// Number of retransmitted packets
    Resent,
    /// Goodput of the faster direction
    Goodput,
    /// Larger of the two median round-trip times
    Rtt,
    /// Time spent waiting for timeouts and for closed windows to open
    Waited,
    /// Longest time from a request to its answer
    Answer,
    /// Number of times that a receiver's window closed
    ZeroWindows,
}

impl SortKey {
    /// Returns the rank of a connection. Higher ranks are listed first.
    pub(super) fn rank(self, findings: &ConnectionFindings) -> u64 {
        let sum = |of: fn(&DirectionFindings) -> u64| findings.directions.iter().map(of).sum();
        let most = |of: fn(&DirectionFindings) -> Option<f64>| {
            findings.directions.iter().filter_map(of).fold(0.0, f64::max).to_bits()
        };
        match self {
            // Flipping the sign bit orders times before 1970 correctly.
            Self::Start => !(findings.begin_unix_ns.cast_unsigned() ^ 1 << 63),
            // The bit patterns of non-negative floats are in the order of the floats.
            Self::Duration => findings.seconds.max(0.0).to_bits(),
            Self::Bytes => sum(|direction| direction.sent_bytes),
            Self::Resent => sum(|direction| direction.retransmissions.packets),
            Self::Goodput => most(|direction| Some(direction.goodput_bit_per_s)),
            Self::Rtt => most(|direction| direction.rtt.median_seconds),
            Self::Waited => most(|direction| Some(direction.time.waiting_seconds())),
            Self::Answer => findings.answers.max_seconds.unwrap_or(0.0).to_bits(),
            Self::ZeroWindows => sum(|direction| direction.window.zero_windows),
        }
    }
}

/// The `most` items with the highest ranks. Counts all items that were offered.
pub(super) struct TopRanked<T> {
    most: usize,
    /// Items by rank and number. If two items have the same rank, the one with the smaller number comes
    /// first.
    items: BTreeMap<(u64, Reverse<u64>), T>,
    pub(super) all: u64,
}

impl<T> TopRanked<T> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, items: BTreeMap::new(), all: 0 }
    }

    /// Returns true if an item with this rank and number would be kept.
    pub(super) fn has_room(&self, rank: u64, number: u64) -> bool {
        let least = self.items.first_key_value().map(|(key, _)| *key);
        self.items.len() < self.most || least.is_some_and(|least| least < (rank, Reverse(number)))
    }

    pub(super) fn take(&mut self, rank: u64, number: u64, item: impl FnOnce() -> T) {
        self.all += 1;
        if !self.has_room(rank, number) {
            return;
        }
        self.items.insert((rank, Reverse(number)), item());
        if self.items.len() > self.most {
            self.items.pop_first();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the items with their numbers, highest rank first.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (u64, &T)> {
        self.items.iter().rev().map(|((_, Reverse(number)), item)| (*number, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_ranked_items_are_kept_and_all_counted() {
        let mut items = TopRanked::new(2);
        for (number, rank) in [(0, 5), (1, 9), (2, 5), (3, 1), (4, 9)] {
            items.take(rank, number, || rank);
        }
        assert_eq!(items.in_order().map(|(number, _)| number).collect::<Vec<_>>(), [1, 4]);
        assert_eq!((items.all, items.len()), (5, 2));
        let mut none = TopRanked::new(0);
        none.take(1, 1, || ());
        assert_eq!((none.all, none.len()), (1, 0));
    }
}
