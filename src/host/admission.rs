//! AdmissionClass of connections, for the kinds that remote peers could accumulate, with the oldest connection of
//! each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use airwire::time::Instant;

use super::ListenId;

/// The class of a connection: the kind that it counts as for the host's limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum AdmissionClass {
    /// It was opened by this host, or it has ended.
    #[default]
    Ordinary,
    /// It came to a listener, and its handshake is not complete.
    HalfOpen,
    /// It came to a listener, and was accepted or waits to be.
    Arrived,
    /// The application has closed it and the peer has not: data or a FIN is still to be sent, acknowledged or
    /// received.
    Orphan,
    /// It is in TIME-WAIT.
    TimeWait,
}

/// Connections of one class, with the time since when they have had it.
#[derive(Debug, Default)]
struct Line {
    by_age: BTreeSet<(Instant, u32)>,
    since: BTreeMap<u32, Instant>,
}

impl Line {
    fn enter(&mut self, now: Instant, index: u32) {
        self.by_age.insert((now, index));
        self.since.insert(index, now);
    }

    fn leave(&mut self, index: u32) {
        if let Some(since) = self.since.remove(&index) {
            self.by_age.remove(&(since, index));
        }
    }

    fn oldest(&self) -> Option<(Instant, u32)> {
        self.by_age.first().copied()
    }

    fn oldest_of_more_than(&self, most: usize) -> Option<u32> {
        self.oldest().filter(|_| self.by_age.len() > most).map(|(_, index)| index)
    }
}

/// Connections from one source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Visitors {
    pub(super) half_open: usize,
    pub(super) arrived: usize,
}

/// A connection, as the table identify it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who {
    pub(super) index: u32,
    pub(super) peer: IpAddr,
    /// The listener that it came to, until it is accepted.
    pub(super) listener: Option<ListenId>,
}

/// All connections of a host by their class.
#[derive(Debug, Default)]
pub(super) struct AdmissionTable {
    half_open: BTreeMap<ListenId, Line>,
    orphans: Line,
    time_wait: Line,
    sources: BTreeMap<IpAddr, Visitors>,
}

impl AdmissionTable {
    pub(super) fn change(&mut self, now: Instant, who: Who, from: AdmissionClass, to: AdmissionClass) {
        match (from, who.listener) {
            (AdmissionClass::HalfOpen, Some(id)) => {
                if let Some(line) = self.half_open.get_mut(&id) {
                    line.leave(who.index);
                    if line.since.is_empty() {
                        self.half_open.remove(&id);
                    }
                }
            }
            (AdmissionClass::Orphan, _) => self.orphans.leave(who.index),
            (AdmissionClass::TimeWait, _) => self.time_wait.leave(who.index),
            (AdmissionClass::Ordinary | AdmissionClass::Arrived | AdmissionClass::HalfOpen, _) => {}
        }
        match (to, who.listener) {
            (AdmissionClass::HalfOpen, Some(id)) => {
                self.half_open.entry(id).or_default().enter(now, who.index)
            }
            (AdmissionClass::Orphan, _) => self.orphans.enter(now, who.index),
            (AdmissionClass::TimeWait, _) => self.time_wait.enter(now, who.index),
            (AdmissionClass::Ordinary | AdmissionClass::Arrived | AdmissionClass::HalfOpen, _) => {}
        }
        self.count(who.peer, from, to);
    }

    fn count(&mut self, peer: IpAddr, from: AdmissionClass, to: AdmissionClass) {
        let counts = |class| match class {
            AdmissionClass::HalfOpen => (1, 0),
            AdmissionClass::Arrived => (0, 1),
            AdmissionClass::Ordinary | AdmissionClass::Orphan | AdmissionClass::TimeWait => (0, 0),
        };
        let (before, after) = (counts(from), counts(to));
        if before == after {
            return;
        }
        let source = source_of(peer);
        let visitors = self.sources.entry(source).or_default();
        visitors.half_open = visitors.half_open + after.0 - before.0;
        visitors.arrived = visitors.arrived + after.1 - before.1;
        if *visitors == Visitors::default() {
            self.sources.remove(&source);
        }
    }

    pub(super) fn visitors(&self, peer: IpAddr) -> Visitors {
        self.sources.get(&source_of(peer)).copied().unwrap_or_default()
    }

    pub(super) fn oldest_half_open(&self, at: ListenId) -> Option<(Instant, u32)> {
        self.half_open.get(&at)?.oldest()
    }

    /// Returns the oldest orphan if there are more than `most`.
    pub(super) fn superfluous_orphan(&self, most: usize) -> Option<u32> {
        self.orphans.oldest_of_more_than(most)
    }

    /// Returns the oldest connection in TIME-WAIT if there are more than `most`.
    pub(super) fn superfluous_time_wait(&self, most: usize) -> Option<u32> {
        self.time_wait.oldest_of_more_than(most)
    }
}

/// Returns the source of a peer. An IPv6 host controls its whole /64 (RFC 4291 §2.5.4, RFC 6177), so a /64 is
/// one source.
pub(super) fn source_of(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(addr) => Ipv6Addr::from_bits(addr.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standings_track_oldest_connection_of_each_kind() {
        use AdmissionClass::{Arrived, HalfOpen, Ordinary, Orphan, TimeWait};
        let mut table = AdmissionTable::default();
        let peer = IpAddr::from([192, 0, 2, 1]);
        let at = Instant::from_secs;
        let who = |index, listener| Who { index, peer, listener: Some(ListenId(listener)) };
        for (index, when) in [(7, 3), (8, 1), (9, 2)] {
            table.change(at(when), who(index, 1), Ordinary, HalfOpen);
        }
        table.change(at(0), who(10, 0), Ordinary, HalfOpen);
        assert_eq!(table.oldest_half_open(ListenId(1)), Some((at(1), 8)));
        assert_eq!(table.oldest_half_open(ListenId(2)), None);
        assert_eq!(table.visitors(peer), Visitors { half_open: 4, arrived: 0 });
        table.change(at(4), who(8, 1), HalfOpen, Arrived);
        assert_eq!(table.oldest_half_open(ListenId(1)), Some((at(2), 9)));
        assert_eq!(table.visitors(peer), Visitors { half_open: 3, arrived: 1 });
        let accepted = Who { listener: None, ..who(8, 1) };
        table.change(at(5), accepted, Arrived, Orphan);
        assert_eq!((table.superfluous_orphan(1), table.superfluous_orphan(0)), (None, Some(8)));
        table.change(at(6), accepted, Orphan, TimeWait);
        assert_eq!((table.superfluous_orphan(0), table.superfluous_time_wait(0)), (None, Some(8)));
        table.change(at(7), accepted, TimeWait, Ordinary);
        for (index, listener) in [(10, 0), (7, 1), (9, 1)] {
            table.change(at(8), who(index, listener), HalfOpen, Ordinary);
        }
        let AdmissionTable { half_open, orphans, time_wait, sources } = table;
        assert!(half_open.is_empty() && sources.is_empty());
        for line in [orphans, time_wait] {
            assert!(line.by_age.is_empty() && line.since.is_empty());
        }
    }

    #[test]
    fn ipv6_prefix_of_64_bits_is_one_source() {
        let source = |text: &str| source_of(text.parse().unwrap());
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:0:0:7"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
    }
}
