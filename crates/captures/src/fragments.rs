//! Reassembles IP fragments.
//!
//! Limits on the number of packets, the bytes stored of each, and the waiting time bound the memory.

use std::collections::BTreeMap;
use std::net::IpAddr;

use airwire::segment::Ecn;

use super::capture::Frame;
use super::encapsulation::{Bytes, HeaderParser, Ip, IpFragment, Layer};
use super::ip::{self, Context, Found};
use super::packet::Timestamp;
use super::problem::{Problem, Problems};

/// Maximum number of packets that are being reassembled.
const MAX_PACKETS: usize = 1024;
/// Bytes stored of each packet: enough for all headers, even in nested tunnels.
const HEAD_BYTES: usize = 2048;
/// Maximum number of fragments per packet. 64 KiB in frames of 576 bytes are about 120 fragments.
const MAX_FRAGMENTS: usize = 256;
/// Longest packet in bytes (RFC 791, RFC 8200).
const MAX_LENGTH: usize = 65_535;
/// Longest time between a packet's first and last fragment, in nanoseconds (RFC 8200 §4.5).
const TIMEOUT: i64 = 60_000_000_000;

/// The packets that are being reassembled.
#[derive(Debug, Default)]
pub struct Fragments {
    partial: BTreeMap<Key, Partial>,
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
struct Partial {
    first_frame: u64,
    since: Timestamp,
    frames: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Reassembly(Reassembly),
    /// The fragments overlap. Further fragments of the packet are also counted as overlapping.
    Invalid,
}

#[derive(Debug)]
struct Reassembly {
    ip: Ip,
    protocol: u8,
    /// Begin and end of each fragment, sorted and without overlaps.
    fragments: Vec<(usize, usize)>,
    /// Total length of the fragments in bytes.
    bytes: usize,
    /// The length of the packet, known after the last fragment has arrived.
    total: Option<usize>,
    /// The first bytes of the packet.
    head: Vec<u8>,
    /// Number of leading bytes of `head` that the capture has not cut off.
    uncut: usize,
}

/// A reassembled packet.
struct Reassembled {
    ip: Ip,
    protocol: u8,
    head: Vec<u8>,
    total: usize,
    is_cut: bool,
}

impl Fragments {
    /// Reads the headers in a frame. A reassembled packet has the number and the time of the frame that
    /// completes it.
    pub fn packet(&mut self, frame: &Frame<'_>, problems: &mut Problems) -> Found {
        let bytes = Bytes::new(frame.data, frame.length as usize);
        let mut parser = HeaderParser::default();
        if let Some((ip, bytes)) = parser.parse_common(frame.link, bytes) {
            return ip::tcp(frame.context(), &parser, &ip, bytes);
        }
        self.parse(frame.context(), &mut parser, Layer::Link(frame.link), bytes, problems)
    }

    /// Follows the headers, and reassembles fragments at each level. `parser` limits the depth of the
    /// recursion.
    fn parse(
        &mut self,
        context: Context,
        parser: &mut HeaderParser,
        layer: Layer,
        bytes: Bytes<'_>,
        problems: &mut Problems,
    ) -> Found {
        let end = parser.parse(layer, bytes);
        let fragment = match ip::found(context, parser, end) {
            Ok(found) => return found,
            Err(fragment) => fragment,
        };
        let Some(packet) = self.add(context, &fragment, problems) else { return Found::Fragment };
        let bytes = Bytes::new(&packet.head, packet.total);
        let layer = Layer::Transport(packet.protocol, packet.ip);
        match self.parse(context, parser, layer, bytes, problems) {
            // Only the head was stored, although the capture has the whole packet.
            Found::Flawed(tcp, Problem::PayloadCut) if !packet.is_cut => Found::Tcp(tcp),
            found => found,
        }
    }

    /// Adds a fragment. Returns the packet if it is complete.
    fn add(
        &mut self,
        context: Context,
        fragment: &IpFragment<'_>,
        problems: &mut Problems,
    ) -> Option<Reassembled> {
        let Ip { src, dst, ident, .. } = fragment.ip;
        let protocol = ident.map(|_| fragment.protocol);
        let key = Key { src, dst, protocol, ident: fragment.header.ident };
        if let Some(partial) = self.partial.get(&key).filter(|it| it.is_old(context.at)) {
            partial.report(problems);
            self.partial.remove(&key);
        }
        if !self.partial.contains_key(&key) {
            self.make_room(context.at, problems);
        }
        let partial = self.partial.entry(key).or_insert_with(|| Partial {
            first_frame: context.number,
            since: context.at,
            frames: 0,
            state: State::Reassembly(Reassembly::new(fragment)),
        });
        partial.frames += 1;
        let State::Reassembly(reassembly) = &mut partial.state else { return None };
        match reassembly.add(fragment) {
            Ok(()) if reassembly.is_complete() => {}
            Ok(()) => return None,
            Err(Overlap) => {
                partial.state = State::Invalid;
                return None;
            }
        }
        match self.partial.remove(&key)?.state {
            State::Reassembly(reassembly) => Some(reassembly.finish()),
            State::Invalid => None,
        }
    }

    /// Makes room for one more packet: removes expired packets. If there are none, removes the packet that
    /// has waited longest.
    fn make_room(&mut self, now: Timestamp, problems: &mut Problems) {
        if self.partial.len() < MAX_PACKETS {
            return;
        }
        for (_, old) in self.partial.extract_if(.., |_, partial| partial.is_old(now)) {
            old.report(problems);
        }
        if self.partial.len() < MAX_PACKETS {
            return;
        }
        let longest = self.partial.iter().min_by_key(|(_, partial)| partial.first_frame).map(|(key, _)| *key);
        if let Some(partial) = longest.and_then(|key| self.partial.remove(&key)) {
            partial.report(problems);
        }
    }

    /// Records the fragments of packets that are still incomplete.
    pub fn finish(&mut self, problems: &mut Problems) {
        for partial in std::mem::take(&mut self.partial).values() {
            partial.report(problems);
        }
    }
}

impl Partial {
    fn is_old(&self, now: Timestamp) -> bool {
        // The clock may jump backwards.
        now.0.saturating_sub(self.since.0).saturating_abs() > TIMEOUT
    }

    fn report(&self, problems: &mut Problems) {
        let problem = match self.state {
            State::Reassembly(_) => Problem::Fragment,
            State::Invalid => Problem::FragmentOverlap,
        };
        problems.add(problem, self.first_frame, self.frames);
    }
}

/// The error for fragments that do not fit together.
struct Overlap;

impl Reassembly {
    fn new(fragment: &IpFragment<'_>) -> Self {
        Self {
            ip: fragment.ip,
            protocol: fragment.protocol,
            fragments: Vec::new(),
            bytes: 0,
            total: None,
            head: Vec::new(),
            uncut: HEAD_BYTES,
        }
    }

    fn add(&mut self, fragment: &IpFragment<'_>) -> Result<(), Overlap> {
        let is_last = fragment.header.is_last;
        let (begin, end) = (fragment.header.offset, fragment.header.offset + fragment.bytes.len());
        // A fragment with the same range was captured twice, or the path has duplicated it.
        let Err(at) = self.fragments.binary_search(&(begin, end)) else { return Ok(()) };
        let before = at.checked_sub(1).map_or(0, |before| self.fragments[before].1);
        let after = self.fragments.get(at).map_or(usize::MAX, |(begin, _)| *begin);
        let is_empty = begin == end;
        let is_uneven = !is_last && !(end - begin).is_multiple_of(8);
        let total = if is_last { Some(end) } else { self.total };
        let is_beyond_end = total.is_some_and(|total| total < end || total < self.end());
        let is_second_end = is_last && self.total.is_some_and(|total| total != end);
        let is_too_many = self.fragments.len() == MAX_FRAGMENTS || end > MAX_LENGTH;
        if is_empty
            || is_uneven
            || before > begin
            || after < end
            || is_beyond_end
            || is_second_end
            || is_too_many
        {
            return Err(Overlap);
        }
        if begin == 0 {
            // The packet's header is the header of its first fragment.
            let ecn = self.ip.ecn;
            (self.ip, self.protocol) = (fragment.ip, fragment.protocol);
            self.merge_ecn(ecn);
        }
        self.merge_ecn(fragment.ip.ecn);
        self.fragments.insert(at, (begin, end));
        self.bytes += end - begin;
        self.total = total;
        self.copy_head(fragment);
        Ok(())
    }

    /// Applies a CE mark of any fragment to the packet (RFC 3168 §5.3).
    fn merge_ecn(&mut self, ecn: Ecn) {
        if ecn == Ecn::Ce {
            self.ip.ecn = Ecn::Ce;
        }
    }

    fn copy_head(&mut self, fragment: &IpFragment<'_>) {
        let (offset, captured) = (fragment.header.offset, fragment.bytes.captured());
        if captured.len() < fragment.bytes.len() {
            self.uncut = self.uncut.min(offset + captured.len());
        }
        let end = (offset + captured.len()).min(HEAD_BYTES);
        if let Some(len @ 1..) = end.checked_sub(offset) {
            self.head.resize(self.head.len().max(end), 0);
            self.head[offset..end].copy_from_slice(&captured[..len]);
        }
    }

    fn end(&self) -> usize {
        self.fragments.last().map_or(0, |(_, end)| *end)
    }

    fn is_complete(&self) -> bool {
        self.total == Some(self.bytes)
    }

    fn finish(mut self) -> Reassembled {
        let is_cut = self.uncut < HEAD_BYTES.min(self.bytes);
        self.head.truncate(self.uncut);
        Reassembled { ip: self.ip, protocol: self.protocol, head: self.head, total: self.bytes, is_cut }
    }
}

#[cfg(test)]
mod tests;
