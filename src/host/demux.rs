//! Lookup of the connection that a segment belongs to, by its two addresses.
//!
//! A hash table with open addressing. An entry takes eight bytes, and the addresses are read from the
//! connection, which is processed next. A segment therefore costs the same with ten connections as with a
//! hundred thousand. The hash is keyed, because peers choose their ports.

use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use siphasher::sip::SipHasher13;

/// The local address and the remote one.
pub(super) type Ends<'a> = (&'a SocketAddr, &'a SocketAddr);

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: NonZeroU32,
    index: u32,
}

#[derive(Debug)]
pub(super) struct Demux {
    seed: u64,
    /// The length is a power of two, and at least half of the entries are free.
    entries: Vec<Option<Entry>>,
    used: usize,
    /// The connection that was found last.
    latest: Option<u32>,
}

/// The position of an entry, or the free position where it belongs.
enum Place {
    Found(usize),
    Free(usize),
}

impl Demux {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, entries: vec![None; 2], used: 0, latest: None }
    }

    /// Returns the index of the connection with these addresses. `matches` checks a candidate.
    #[inline]
    pub(super) fn find(&mut self, ends: Ends<'_>, matches: impl Fn(u32) -> bool) -> Option<u32> {
        // Successive segments often belong to one connection. The check needs no hash.
        if let Some(latest) = self.latest.filter(|latest| matches(*latest)) {
            return Some(latest);
        }
        self.find_by_hash(ends, matches)
    }

    fn find_by_hash(&mut self, ends: Ends<'_>, matches: impl Fn(u32) -> bool) -> Option<u32> {
        match self.search(self.hash(ends), matches) {
            Place::Found(at) => {
                self.latest = self.entries[at].map(|entry| entry.index);
                self.latest
            }
            Place::Free(_) => None,
        }
    }

    /// Maps these addresses to the connection at `index`, and replaces an earlier mapping.
    pub(super) fn insert(&mut self, ends: Ends<'_>, index: u32, matches: impl Fn(u32) -> bool) {
        self.latest = None;
        if 2 * (self.used + 1) > self.entries.len() {
            self.grow();
        }
        let hash = self.hash(ends);
        let at = match self.search(hash, matches) {
            Place::Found(at) => at,
            Place::Free(at) => {
                self.used += 1;
                at
            }
        };
        self.entries[at] = Some(Entry { hash, index });
    }

    /// Removes the mapping of these addresses to `index`. Does nothing if they are now mapped to another
    /// connection.
    pub(super) fn remove(&mut self, ends: Ends<'_>, index: u32) {
        self.latest = None;
        let Place::Found(mut free) = self.search(self.hash(ends), |other| other == index) else { return };
        self.entries[free] = None;
        self.used -= 1;
        // Move up the entries that follow, because a search ends at the first free entry.
        let mut at = free;
        while let Some(entry) = self.entries[self.after(at)] {
            at = self.after(at);
            let steps = |from: usize| at.wrapping_sub(from) & (self.entries.len() - 1);
            if steps(self.home(entry.hash)) >= steps(free) {
                self.entries[free] = self.entries[at].take();
                free = at;
            }
        }
    }

    fn grow(&mut self) {
        let entries = vec![None; 2 * self.entries.len()];
        for entry in std::mem::replace(&mut self.entries, entries).into_iter().flatten() {
            if let Place::Free(at) = self.search(entry.hash, |_| false) {
                self.entries[at] = Some(entry);
            }
        }
    }

    fn search(&self, hash: NonZeroU32, matches: impl Fn(u32) -> bool) -> Place {
        let mut at = self.home(hash);
        while let Some(entry) = self.entries[at] {
            if entry.hash == hash && matches(entry.index) {
                return Place::Found(at);
            }
            at = self.after(at);
        }
        Place::Free(at)
    }

    /// Returns the position where a search for this hash starts.
    fn home(&self, hash: NonZeroU32) -> usize {
        hash.get() as usize & (self.entries.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }

    fn hash(&self, (local, remote): Ends<'_>) -> NonZeroU32 {
        let mut hasher = SipHasher13::new_with_keys(self.seed, 0x6465_6d75_7800);
        match (local.ip(), remote.ip()) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                hasher.write_u64(u64::from(local.to_bits()) << 32 | u64::from(remote.to_bits()));
            }
            ends => {
                for end in <[IpAddr; 2]>::from(ends) {
                    let bits = match end {
                        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
                        IpAddr::V6(address) => address.to_bits(),
                    };
                    hasher.write_u64((bits >> 64) as u64);
                    hasher.write_u64(bits as u64);
                }
            }
        }
        hasher.write_u64(u64::from(local.port()) << 16 | u64::from(remote.port()));
        NonZeroU32::new(hasher.finish() as u32).unwrap_or(NonZeroU32::MIN)
    }
}

#[cfg(test)]
mod tests;
