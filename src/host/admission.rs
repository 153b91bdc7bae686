//! The connections of a host by class, for the limits on what remote peers can accumulate.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use airwire::time::Instant;

use super::ListenId;

/// The class of a connection, for the host's limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum AdmissionClass {
    /// This host has opened it, or it has ended.
    #[default]
    Ordinary,
    /// The connection belongs to a listener, and its handshake is not complete.
    HalfOpen,
    /// A peer has opened it. Its handshake is complete, or TCP Fast Open has accepted its data.
    Established,
    /// The application has closed it and the peer has not: data or a FIN is still to be sent, acknowledged or
    /// received.
    Orphan,
    /// The connection is in TIME-WAIT.
    TimeWait,
}

/// Connections of one class, in the order in which they entered it.
#[derive(Debug, Default)]
struct AgeQueue {
    /// The time of entry and the index of each connection.
    by_age: BTreeSet<(Instant, u32)>,
    since: BTreeMap<u32, Instant>,
}

impl AgeQueue {
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

    fn oldest_beyond(&self, limit: usize) -> Option<u32> {
        self.oldest().filter(|_| self.by_age.len() > limit).map(|(_, index)| index)
    }
}

/// Numbers of connections from one source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct SourceCounts {
    pub(super) half_open: usize,
    pub(super) established: usize,
}

/// A connection whose class changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) index: u32,
    pub(super) peer: IpAddr,
    /// The connection's listener, until the application accepts the connection.
    pub(super) listener: Option<ListenId>,
}

/// The connections of the limited classes.
#[derive(Debug, Default)]
pub(super) struct AdmissionTable {
    half_open: BTreeMap<ListenId, AgeQueue>,
    orphans: AgeQueue,
    time_wait: AgeQueue,
    sources: BTreeMap<IpAddr, SourceCounts>,
}

impl AdmissionTable {
    /// Moves a connection from one class to another.
    pub(super) fn change(&mut self, now: Instant, member: Member, from: AdmissionClass, to: AdmissionClass) {
        match (from, member.listener) {
            (AdmissionClass::HalfOpen, Some(id)) => {
                if let Some(queue) = self.half_open.get_mut(&id) {
                    queue.leave(member.index);
                    if queue.since.is_empty() {
                        self.half_open.remove(&id);
                    }
                }
            }
            (AdmissionClass::Orphan, _) => self.orphans.leave(member.index),
            (AdmissionClass::TimeWait, _) => self.time_wait.leave(member.index),
            (AdmissionClass::Ordinary | AdmissionClass::Established | AdmissionClass::HalfOpen, _) => {}
        }
        match (to, member.listener) {
            (AdmissionClass::HalfOpen, Some(id)) => {
                self.half_open.entry(id).or_default().enter(now, member.index)
            }
            (AdmissionClass::Orphan, _) => self.orphans.enter(now, member.index),
            (AdmissionClass::TimeWait, _) => self.time_wait.enter(now, member.index),
            (AdmissionClass::Ordinary | AdmissionClass::Established | AdmissionClass::HalfOpen, _) => {}
        }
        self.count(member.peer, from, to);
    }

    fn count(&mut self, peer: IpAddr, from: AdmissionClass, to: AdmissionClass) {
        let count_of = |class| match class {
            AdmissionClass::HalfOpen => (1, 0),
            AdmissionClass::Established => (0, 1),
            AdmissionClass::Ordinary | AdmissionClass::Orphan | AdmissionClass::TimeWait => (0, 0),
        };
        let (before, after) = (count_of(from), count_of(to));
        if before == after {
            return;
        }
        let source = source_of(peer);
        let counts = self.sources.entry(source).or_default();
        counts.half_open = counts.half_open + after.0 - before.0;
        counts.established = counts.established + after.1 - before.1;
        if *counts == SourceCounts::default() {
            self.sources.remove(&source);
        }
    }

    /// Returns the numbers of connections from the source of `peer`.
    pub(super) fn counts_of(&self, peer: IpAddr) -> SourceCounts {
        self.sources.get(&source_of(peer)).copied().unwrap_or_default()
    }

    /// Returns the oldest half-open connection of a listener, and when it began.
    pub(super) fn oldest_half_open(&self, id: ListenId) -> Option<(Instant, u32)> {
        self.half_open.get(&id)?.oldest()
    }

    /// Returns the oldest orphan if there are more than `limit`.
    pub(super) fn excess_orphan(&self, limit: usize) -> Option<u32> {
        self.orphans.oldest_beyond(limit)
    }

    /// Returns the oldest connection in TIME-WAIT if there are more than `limit`.
    pub(super) fn excess_time_wait(&self, limit: usize) -> Option<u32> {
        self.time_wait.oldest_beyond(limit)
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
    fn table_finds_oldest_connection_of_each_class() {
        use AdmissionClass::{Established, HalfOpen, Ordinary, Orphan, TimeWait};
        let mut table = AdmissionTable::default();
        let peer = IpAddr::from([192, 0, 2, 1]);
        let at = Instant::from_secs;
        let member = |index, listener| Member { index, peer, listener: Some(ListenId(listener)) };
        for (index, when) in [(7, 3), (8, 1), (9, 2)] {
            table.change(at(when), member(index, 1), Ordinary, HalfOpen);
        }
        table.change(at(0), member(10, 0), Ordinary, HalfOpen);
        assert_eq!(table.oldest_half_open(ListenId(1)), Some((at(1), 8)));
        assert_eq!(table.oldest_half_open(ListenId(2)), None);
        assert_eq!(table.counts_of(peer), SourceCounts { half_open: 4, established: 0 });
        table.change(at(4), member(8, 1), HalfOpen, Established);
        assert_eq!(table.oldest_half_open(ListenId(1)), Some((at(2), 9)));
        assert_eq!(table.counts_of(peer), SourceCounts { half_open: 3, established: 1 });
        let accepted = Member { listener: None, ..member(8, 1) };
        table.change(at(5), accepted, Established, Orphan);
        assert_eq!((table.excess_orphan(1), table.excess_orphan(0)), (None, Some(8)));
        table.change(at(6), accepted, Orphan, TimeWait);
        assert_eq!((table.excess_orphan(0), table.excess_time_wait(0)), (None, Some(8)));
        table.change(at(7), accepted, TimeWait, Ordinary);
        for (index, listener) in [(10, 0), (7, 1), (9, 1)] {
            table.change(at(8), member(index, listener), HalfOpen, Ordinary);
        }
        let AdmissionTable { half_open, orphans, time_wait, sources } = table;
        assert!(half_open.is_empty() && sources.is_empty(), "{half_open:?}, {sources:?}");
        for queue in [orphans, time_wait] {
            assert!(queue.by_age.is_empty() && queue.since.is_empty(), "{queue:?}");
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
