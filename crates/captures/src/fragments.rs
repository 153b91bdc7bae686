//! Reassembles IP fragments.
//!
//! Limits on the number of packets, the bytes kept of each, and the waiting time bound the memory.

use std::collections::BTreeMap;
use std::net::IpAddr;

use airwire::segment::Ecn;

use super::capture::Frame;
use super::encapsulation::{Ip, Layer, Octets, Piece, Walk};
use super::ip::{self, Context, Found};
use super::packet::Timestamp;
use super::problem::{Problem, Problems};

/// Maximum number of packets that are being reassembled.
const MOST: usize = 1024;
/// Bytes kept of each packet: enough for all headers, even in nested tunnels.
const HEAD: usize = 2048;
/// Maximum number of fragments per packet. 64 KiB in frames of 576 bytes are about 120 fragments.
const MOST_PIECES: usize = 256;
/// Longest packet in bytes (RFC 791, RFC 8200).
const LONGEST: usize = 65_535;
/// Longest time between a packet's first and last fragment, in nanoseconds (RFC 8200 §4.5).
const WAIT: i64 = 60_000_000_000;

/// The packets that are being reassembled.
#[derive(Debug, Default)]
pub struct Fragments {
    waiting: BTreeMap<Key, Waiting>,
}

/// The fields that all fragments of one packet share (RFC 791, RFC 8200 §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    src: IpAddr,
    dst: IpAddr,
    /// IPv4 only.
    protocol: Option<u8>,
    ident: u32,
}

#[derive(Debug)]
struct Waiting {
    first_frame: u64,
    since: Timestamp,
    frames: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Growing(Growing),
    /// The fragments overlap. Further fragments of the packet are counted with them.
    Broken,
}

#[derive(Debug)]
struct Growing {
    ip: Ip,
    protocol: u8,
    /// Begin and end of each fragment, sorted and without overlaps.
    pieces: Vec<(usize, usize)>,
    /// Total length of the fragments in bytes.
    octets: usize,
    /// The length of the packet, known after the last fragment has arrived.
    total: Option<usize>,
    /// The first bytes of the packet.
    head: Vec<u8>,
    /// Number of leading bytes of `head` that the capture has not cut off.
    uncut: usize,
}

/// A reassembled packet.
struct Whole {
    ip: Ip,
    protocol: u8,
    head: Vec<u8>,
    total: usize,
    was_cut: bool,
}

impl Fragments {
    /// Reads the headers in a frame. A reassembled packet has the number and the time of the frame that
    /// completes it.
    pub fn packet(&mut self, frame: &Frame<'_>, problems: &mut Problems) -> Found {
        let octets = Octets::new(frame.data, frame.length as usize);
        let mut walk = Walk::default();
        if let Some((ip, octets)) = walk.straight(frame.link, octets) {
            return ip::tcp(frame.context(), &walk, &ip, octets);
        }
        self.inside(frame.context(), &mut walk, Layer::Link(frame.link), octets, problems)
    }

    /// Follows the headers, and reassembles fragments at each level. `walk` limits the depth of the
    /// recursion.
    fn inside(
        &mut self,
        context: Context,
        walk: &mut Walk,
        layer: Layer,
        octets: Octets<'_>,
        problems: &mut Problems,
    ) -> Found {
        let end = walk.follow(layer, octets);
        let piece = match ip::found(context, walk, end) {
            Ok(found) => return found,
            Err(piece) => piece,
        };
        let Some(whole) = self.take(context, &piece, problems) else { return Found::Fragment };
        let octets = Octets::new(&whole.head, whole.total);
        let layer = Layer::Transport(whole.protocol, whole.ip);
        match self.inside(context, walk, layer, octets, problems) {
            // Only the head was kept here, although the capture has the whole packet.
            Found::Flawed(packet, Problem::PayloadCut) if !whole.was_cut => Found::Tcp(packet),
            found => found,
        }
    }

    fn take(&mut self, context: Context, piece: &Piece<'_>, problems: &mut Problems) -> Option<Whole> {
        let Ip { src, dst, ident, .. } = piece.ip;
        let protocol = ident.map(|_| piece.protocol);
        let key = Key { src, dst, protocol, ident: piece.fragment.ident };
        if let Some(waiting) = self.waiting.get(&key).filter(|it| it.is_old(context.at)) {
            waiting.tell(problems);
            self.waiting.remove(&key);
        }
        if !self.waiting.contains_key(&key) {
            self.make_room(context.at, problems);
        }
        let waiting = self.waiting.entry(key).or_insert_with(|| Waiting {
            first_frame: context.number,
            since: context.at,
            frames: 0,
            state: State::Growing(Growing::new(piece)),
        });
        waiting.frames += 1;
        let State::Growing(growing) = &mut waiting.state else { return None };
        match growing.add(piece) {
            Ok(()) if growing.is_whole() => {}
            Ok(()) => return None,
            Err(Overlap) => {
                waiting.state = State::Broken;
                return None;
            }
        }
        match self.waiting.remove(&key)?.state {
            State::Growing(growing) => Some(growing.whole()),
            State::Broken => None,
        }
    }

    /// Makes room for one more packet: removes expired packets, or else the one that has waited longest.
    fn make_room(&mut self, now: Timestamp, problems: &mut Problems) {
        if self.waiting.len() < MOST {
            return;
        }
        self.waiting.retain(|_, waiting| {
            let is_old = waiting.is_old(now);
            if is_old {
                waiting.tell(problems);
            }
            !is_old
        });
        if self.waiting.len() < MOST {
            return;
        }
        let longest = self.waiting.iter().min_by_key(|(_, waiting)| waiting.first_frame).map(|(key, _)| *key);
        if let Some(waiting) = longest.and_then(|key| self.waiting.remove(&key)) {
            waiting.tell(problems);
        }
    }

    /// Records the fragments of packets that are still incomplete.
    pub fn finish(&mut self, problems: &mut Problems) {
        for waiting in std::mem::take(&mut self.waiting).values() {
            waiting.tell(problems);
        }
    }
}

impl Waiting {
    fn is_old(&self, now: Timestamp) -> bool {
        // The clock may jump backwards.
        now.0.saturating_sub(self.since.0).saturating_abs() > WAIT
    }

    fn tell(&self, problems: &mut Problems) {
        let problem = match self.state {
            State::Growing(_) => Problem::Fragment,
            State::Broken => Problem::FragmentOverlap,
        };
        problems.add(problem, self.first_frame, self.frames);
    }
}

/// The error for fragments that do not fit together.
struct Overlap;

impl Growing {
    fn new(piece: &Piece<'_>) -> Self {
        Self {
            ip: piece.ip,
            protocol: piece.protocol,
            pieces: Vec::new(),
            octets: 0,
            total: None,
            head: Vec::new(),
            uncut: HEAD,
        }
    }

    fn add(&mut self, piece: &Piece<'_>) -> Result<(), Overlap> {
        let is_last = piece.fragment.is_last;
        let (begin, end) = (piece.fragment.offset, piece.fragment.offset + piece.octets.len());
        // A fragment with the same range was captured twice, or the path has duplicated it.
        let Err(at) = self.pieces.binary_search(&(begin, end)) else { return Ok(()) };
        let before = at.checked_sub(1).map_or(0, |before| self.pieces[before].1);
        let behind = self.pieces.get(at).map_or(usize::MAX, |(begin, _)| *begin);
        let is_empty = begin == end;
        let is_uneven = !is_last && !(end - begin).is_multiple_of(8);
        let total = if is_last { Some(end) } else { self.total };
        let is_beyond = total.is_some_and(|total| total < end || total < self.end());
        let is_second_end = is_last && self.total.is_some_and(|total| total != end);
        let is_too_many = self.pieces.len() == MOST_PIECES || end > LONGEST;
        if is_empty
            || is_uneven
            || before > begin
            || behind < end
            || is_beyond
            || is_second_end
            || is_too_many
        {
            return Err(Overlap);
        }
        if begin == 0 {
            // The packet's header is the header of its first fragment.
            let ecn = self.ip.ecn;
            (self.ip, self.protocol) = (piece.ip, piece.protocol);
            self.mark(ecn);
        }
        self.mark(piece.ip.ecn);
        self.pieces.insert(at, (begin, end));
        self.octets += end - begin;
        self.total = total;
        self.keep(piece);
        Ok(())
    }

    /// Applies a CE mark of any fragment to the packet (RFC 3168 §5.3).
    fn mark(&mut self, ecn: Ecn) {
        if ecn == Ecn::Ce {
            self.ip.ecn = Ecn::Ce;
        }
    }

    fn keep(&mut self, piece: &Piece<'_>) {
        let (offset, kept) = (piece.fragment.offset, piece.octets.kept());
        if kept.len() < piece.octets.len() {
            self.uncut = self.uncut.min(offset + kept.len());
        }
        let end = (offset + kept.len()).min(HEAD);
        if let Some(len @ 1..) = end.checked_sub(offset) {
            self.head.resize(self.head.len().max(end), 0);
            self.head[offset..end].copy_from_slice(&kept[..len]);
        }
    }

    fn end(&self) -> usize {
        self.pieces.last().map_or(0, |(_, end)| *end)
    }

    fn is_whole(&self) -> bool {
        self.total == Some(self.octets)
    }

    fn whole(mut self) -> Whole {
        let was_cut = self.uncut < HEAD.min(self.octets);
        self.head.truncate(self.uncut);
        Whole { ip: self.ip, protocol: self.protocol, head: self.head, total: self.octets, was_cut }
    }
}

#[cfg(test)]
mod tests;
