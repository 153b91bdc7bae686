//! What the application wrote and the peer has not acknowledged yet, addressed by stream offset and bounded.
//!
//! It lies in chunks, not in a ring: a ring that has held a large window once stays as large, and a host with many
//! connections has the largest window of each in memory. A chunk is given back with its last octet.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use airwire::piece::Text;

#[derive(Debug)]
pub(super) struct SendBuffer {
    /// In the order of the stream, none of them empty. Octets below `start` may still lie in the first.
    chunks: VecDeque<Chunk>,
    /// Offset of the first octet.
    start: u64,
    /// Offset behind the last one.
    end: u64,
    limit: usize,
    /// Of [`LARGEST`] octets each, and empty; no more than are in use. Where a buffer is that large, one is full every few
    /// microseconds, and memory that goes back to the system and comes anew each time costs more than what is written into it.
    kept: Vec<Vec<u8>>,
    /// What all of these have allocated.
    allocated: usize,
}

#[derive(Debug)]
struct Chunk {
    /// Offset of its first octet.
    start: u64,
    octets: Octets,
}

#[derive(Debug)]
enum Octets {
    /// Never more than it was made for.
    Own(Vec<u8>),
    /// A full chunk of [`LARGEST`] octets. What leaves refers to it, so that it has not to be copied.
    Shared(Arc<Vec<u8>>),
}

impl Octets {
    fn capacity(&self) -> usize {
        self.memory().capacity()
    }

    fn memory(&self) -> &Vec<u8> {
        match self {
            Self::Own(octets) => octets,
            Self::Shared(octets) => octets,
        }
    }

    fn text(&self, range: Range<usize>) -> Text<'_> {
        match self {
            Self::Own(octets) => Text::Copied(&octets[range]),
            Self::Shared(octets) => Text::Shared(octets, range),
        }
    }
}

impl Chunk {
    /// Offset behind its last octet.
    fn end(&self) -> u64 {
        self.start + self.octets.memory().len() as u64
    }

    fn spare(&self) -> usize {
        self.octets.capacity() - self.octets.memory().len()
    }

    fn append(&mut self, more: &[u8]) {
        if let Octets::Own(octets) = &mut self.octets {
            octets.extend_from_slice(more);
            if octets.len() == LARGEST {
                self.octets = Octets::Shared(Arc::new(std::mem::take(octets)));
            }
        }
    }
}

/// No chunk is smaller, however little is written.
const SMALLEST: usize = 64;
/// Of a buffer with more than this, no chunk is smaller: most allocators are quickest with blocks up to this size.
const USUAL: usize = 1 << 10;
/// No chunk is larger, however much is written.
const LARGEST: usize = 64 << 10;
/// A chunk has this part of the buffer: so much of it is allocated in vain at either end.
const PART: usize = 8;

/// How large a chunk is to be that is made when the buffer comes to hold `len` octets.
fn chunk_for(len: usize) -> usize {
    let least = len.next_power_of_two().clamp(SMALLEST, USUAL);
    (len / PART).next_power_of_two().clamp(least, LARGEST)
}

impl SendBuffer {
    pub(super) fn new(start: u64, limit: usize) -> Self {
        Self { chunks: VecDeque::new(), start, end: start, limit, kept: Vec::new(), allocated: 0 }
    }

    pub(super) fn free(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Takes as much of `bytes` as there is room for.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.free());
        let mut rest = &bytes[..taken];
        while !rest.is_empty() {
            let spare = self.spare();
            if spare == 0 {
                self.add_chunk(chunk_for(self.len() + rest.len()));
                continue;
            }
            let (now, later) = rest.split_at(spare.min(rest.len()));
            if let Some(last) = self.chunks.back_mut() {
                last.append(now);
            }
            self.end += now.len() as u64;
            rest = later;
        }
        taken
    }

    fn add_chunk(&mut self, size: usize) {
        let kept = if size == LARGEST { self.kept.pop() } else { None };
        let octets = kept.unwrap_or_else(|| {
            let new = Vec::with_capacity(size);
            self.allocated += new.capacity();
            new
        });
        self.chunks.push_back(Chunk { start: self.end, octets: Octets::Own(octets) });
    }

    /// The octets of `range`, as far as they are here.
    pub(super) fn texts(&self, range: Range<u64>) -> impl Iterator<Item = Text<'_>> {
        let mut at = range.start.max(self.start);
        let end = range.end.min(self.end);
        let first = self.chunks.partition_point(|chunk| chunk.end() <= at);
        self.chunks.range(first..).map_while(move |chunk| {
            if at >= end {
                return None;
            }
            let from = (at - chunk.start) as usize;
            at = chunk.end().min(end);
            Some(chunk.octets.text(from..(at - chunk.start) as usize))
        })
    }

    /// Everything below `offset` has been acknowledged.
    pub(super) fn release_below(&mut self, offset: u64) {
        self.start = offset.clamp(self.start, self.end);
        while let Some(first) = self.chunks.front().filter(|first| first.end() <= self.start) {
            if first.spare() > 0 {
                // There is room for what comes next.
                break;
            }
            if let Some(first) = self.chunks.pop_front() {
                self.give_back(first.octets);
            }
        }
        let most = if chunk_for(self.len()) < LARGEST { 0 } else { self.chunks.len() };
        if self.kept.len() > most {
            self.allocated -= (self.kept.len() - most) * LARGEST;
            self.kept.truncate(most);
        }
    }

    fn give_back(&mut self, octets: Octets) {
        self.allocated -= octets.capacity();
        // What has not left yet, though it was acknowledged, keeps its memory.
        if let Octets::Shared(octets) = octets
            && let Ok(mut octets) = Arc::try_unwrap(octets)
        {
            octets.clear();
            self.allocated += octets.capacity();
            self.kept.push(octets);
        }
    }

    /// Octets of memory.
    pub(super) fn cost(&self) -> usize {
        self.allocated
    }

    /// How many octets of memory `len` octets more would take.
    pub(super) fn growth(&self, len: usize) -> usize {
        let Some(beyond) = len.checked_sub(self.spare()).filter(|beyond| *beyond > 0) else { return 0 };
        let size = chunk_for(self.len() + len);
        let kept = if size == LARGEST { self.kept.len() * LARGEST } else { 0 };
        beyond.next_multiple_of(size).saturating_sub(kept)
    }

    /// Octets that take no more memory.
    pub(super) fn spare(&self) -> usize {
        self.chunks.back().map_or(0, Chunk::spare)
    }

    /// An idle connection owns no buffer.
    pub(super) fn shrink_if_empty(&mut self) {
        if self.start == self.end && self.allocated > 0 {
            *self = Self::new(self.start, self.limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octet(offset: u64) -> u8 {
        (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    fn octets(range: Range<u64>) -> Vec<u8> {
        range.map(octet).collect()
    }

    fn copied(buffer: &SendBuffer, range: Range<u64>) -> Vec<u8> {
        let mut out = Vec::new();
        buffer.texts(range).for_each(|text| text.copy_to(&mut out));
        out
    }

    #[test]
    fn every_range_is_what_was_written_whatever_the_chunks() {
        let mut x = 12345_u64;
        let mut random = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for limit in [10, 1_000, 60_000, 400_000, 700_000] {
            let mut buffer = SendBuffer::new(1, limit);
            let mut start = 1;
            for round in 0..400 {
                let wanted = 1 + random(limit as u64) as usize;
                let end = buffer.end();
                let room = buffer.free();
                let growth = buffer.growth(wanted.min(room));
                let before = buffer.cost();
                assert_eq!(buffer.write(&octets(end..end + wanted as u64)), wanted.min(room));
                assert_eq!(buffer.cost() - before, growth, "round {round}: {wanted}");
                assert_eq!(buffer.end(), end + wanted.min(room) as u64);
                let from = start + random(1 + buffer.len() as u64);
                let to = from + random(1 + buffer.end() - from);
                assert_eq!(copied(&buffer, from..to), octets(from..to), "round {round}");
                start += random(1 + buffer.len() as u64);
                buffer.release_below(start);
                assert_eq!(buffer.len() as u64, buffer.end() - start);
                let sum: usize = buffer.chunks.iter().map(|chunk| chunk.octets.capacity()).sum();
                assert_eq!(buffer.cost(), sum + buffer.kept.len() * LARGEST);
            }
        }
    }

    #[test]
    fn what_is_not_there_is_not_copied() {
        let mut buffer = SendBuffer::new(1, 100);
        assert_eq!(copied(&buffer, 0..9), b"");
        buffer.write(b"abcdef");
        buffer.release_below(3);
        assert_eq!(copied(&buffer, 0..9), b"cdef");
        assert_eq!(copied(&buffer, 5..5), b"");
        assert_eq!(copied(&buffer, 7..9), b"");
        buffer.release_below(1);
        assert_eq!((buffer.len(), buffer.end()), (4, 7), "an old offset changes nothing");
        buffer.release_below(50);
        assert_eq!((buffer.len(), buffer.end()), (0, 7), "nor is more released than was written");
    }

    #[test]
    fn a_window_costs_little_more_than_its_octets_however_large_it_has_been() {
        let mut buffer = SendBuffer::new(1, 4 << 20);
        buffer.write(&octets(1..1 + (1 << 20)));
        assert_eq!(buffer.cost(), 1 << 20);
        for _ in 0..100 {
            let end = buffer.end();
            buffer.release_below(end - 5_000);
            buffer.write(&octets(end..end + 1_000));
        }
        assert!(buffer.cost() <= 6_000 + 2 * USUAL, "{} octets for 6000", buffer.cost());
        buffer.release_below(buffer.end());
        buffer.shrink_if_empty();
        assert_eq!((buffer.cost(), buffer.chunks.capacity(), buffer.len()), (0, 0, 0));
    }

    #[test]
    fn a_large_window_that_moves_needs_no_memory_from_anybody() {
        let mut buffer = SendBuffer::new(1, 4 << 20);
        buffer.write(&octets(1..1 + (1 << 20)));
        for round in 0..40 {
            let end = buffer.end();
            buffer.release_below(end - (1 << 20) + 65_536);
            assert_eq!(buffer.growth(65_536), 0, "round {round}");
            buffer.write(&octets(end..end + 65_536));
        }
        assert_eq!(buffer.cost(), 1 << 20);
    }

    #[test]
    fn what_leaves_refers_to_full_chunks_and_keeps_them_as_long_as_it_needs_them() {
        let mut buffer = SendBuffer::new(0, 4 << 20);
        buffer.write(&octets(0..(1 << 20) + 100));
        let chunk = LARGEST as u64;
        let across = chunk - 10..chunk + 10;
        let texts: Vec<_> = buffer.texts(across.clone()).collect();
        let [Text::Shared(first, before), Text::Shared(second, behind)] = &texts[..] else {
            panic!("{texts:?} is of two full chunks")
        };
        assert_eq!((before.clone(), behind.clone()), (LARGEST - 10..LARGEST, 0..10));
        let leaving = [Arc::clone(first), Arc::clone(second)];
        assert!(matches!(buffer.texts((1 << 20)..(1 << 20) + 100).next(), Some(Text::Copied(_))), "it grows");

        let cost = buffer.cost();
        buffer.release_below(3 * chunk);
        assert_eq!(buffer.cost(), cost - 2 * LARGEST, "of three chunks one is kept for what comes next");
        buffer.write(&[0xff; 2 * LARGEST]);
        let left = [&leaving[0][LARGEST - 10..], &leaving[1][..10]].concat();
        assert_eq!(left, octets(across), "nothing is written over it");
    }

    #[test]
    fn little_takes_little() {
        let mut buffer = SendBuffer::new(1, 1 << 20);
        buffer.write(b"x");
        assert_eq!(buffer.cost(), SMALLEST);
        buffer.write(&[7; 63]);
        assert_eq!((buffer.cost(), buffer.spare()), (SMALLEST, 0));
    }
}
