//! The send buffer: data that the application wrote and the peer has not acknowledged, addressed by stream
//! offset and limited in size.
//!
//! The data is stored in chunks instead of a ring. A ring that once held a large window keeps that size, so a
//! host with many connections would hold the largest window of each in memory. A chunk is freed with its last
//! byte.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use airwire::piece::Payload;
use airwire::text::Known;

#[derive(Debug)]
pub(super) struct SendBuffer {
    /// Non-empty chunks in stream order. The first may still contain bytes below `start`.
    chunks: VecDeque<Chunk>,
    /// Offset of the first byte.
    start: u64,
    /// Offset after the last byte.
    end: u64,
    limit: usize,
    /// Empty chunks of [`LARGEST`] bytes for reuse, not more than are in use. In such a large buffer, a chunk
    /// fills up every few microseconds. Freeing and allocating a chunk costs more than writing data to it.
    reusable: Vec<Vec<u8>>,
    /// Memory of all chunks.
    allocated: usize,
    /// Boxed because few senders write records.
    records: Option<Box<Records>>,
}

/// Offsets after the last byte of each record (MSG_EOR), in ascending order.
#[derive(Debug, Default)]
struct Records(VecDeque<u64>);

#[derive(Debug)]
struct Chunk {
    /// Offset of the chunk's first byte.
    start: u64,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    /// A chunk that is still being filled, up to its initial capacity.
    Own(Vec<u8>),
    /// A full chunk of [`LARGEST`] bytes, or memory of the application. Outgoing packets refer to it, so its
    /// data need not be copied.
    Shared(Arc<Vec<u8>>, Range<usize>),
    /// Data that takes no memory.
    Known(Known),
}

impl Bytes {
    fn len(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Shared(_, range) => range.len(),
            Self::Known(known) => known.len(),
        }
    }

    /// Returns the memory in use.
    fn memory(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.capacity(),
            Self::Shared(_, range) => range.len(),
            Self::Known(_) => 0,
        }
    }

    fn spare(&self) -> usize {
        self.memory().saturating_sub(self.len())
    }

    fn payload(&self, range: Range<usize>) -> Payload<'_> {
        match self {
            Self::Own(bytes) => Payload::Copied(&bytes[range]),
            Self::Shared(bytes, all) => {
                Payload::Shared(bytes, all.start + range.start..all.start + range.end)
            }
            Self::Known(known) => Payload::Known(known.slice(range)),
        }
    }
}

impl Chunk {
    /// Returns the offset after its last byte.
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn append(&mut self, more: &[u8]) {
        if let Bytes::Own(bytes) = &mut self.bytes {
            bytes.extend_from_slice(more);
            if bytes.len() == LARGEST {
                self.bytes = Bytes::Shared(Arc::new(std::mem::take(bytes)), 0..LARGEST);
            }
        }
    }
}

/// Minimum size of a chunk.
const SMALLEST: usize = 64;
/// Minimum size of a chunk in a buffer that holds more than this. Most allocators are fastest with blocks of
/// up to this size.
const USUAL: usize = 1 << 10;
/// Maximum size of a chunk.
const LARGEST: usize = 64 << 10;
/// Number of chunks in a full buffer. It limits the memory wasted at either end.
const CHUNKS: usize = 8;

/// Returns the size of a new chunk for a buffer that will hold `len` bytes.
fn chunk_for(len: usize) -> usize {
    let min = len.next_power_of_two().clamp(SMALLEST, USUAL);
    (len / CHUNKS).next_power_of_two().clamp(min, LARGEST)
}

impl SendBuffer {
    pub(super) fn new(start: u64, limit: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            start,
            end: start,
            limit,
            reusable: Vec::new(),
            allocated: 0,
            records: None,
        }
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

    /// Writes as much of `data` as there is room for, and returns the number of bytes.
    pub(super) fn write(&mut self, data: Payload<'_>) -> usize {
        let data = data.truncated(self.free());
        let taken = data.len();
        match data {
            Payload::Copied(bytes) => self.write_bytes(bytes),
            // Little data would need a chunk of its own, and keep all the application's memory allocated.
            Payload::Shared(memory, range) if taken < USUAL => self.write_bytes(&memory[range]),
            Payload::Shared(memory, range) => self.write_shared(memory, range),
            Payload::Known(known) => self.write_known(known),
        }
        taken
    }

    fn write_shared(&mut self, memory: &Arc<Vec<u8>>, range: Range<usize>) {
        let len = range.len();
        match self.chunks.back_mut() {
            Some(Chunk { bytes: Bytes::Shared(last, before), .. })
                if Arc::ptr_eq(last, memory) && before.end == range.start =>
            {
                before.end = range.end;
            }
            _ => {
                let bytes = Bytes::Shared(Arc::clone(memory), range);
                self.chunks.push_back(Chunk { start: self.end, bytes });
            }
        }
        self.allocated += len;
        self.end += len as u64;
    }

    fn write_known(&mut self, known: Known) {
        let extended = match self.chunks.back_mut() {
            Some(Chunk { bytes: Bytes::Known(last), .. }) => last.extend(known),
            _ => known.is_empty(),
        };
        if !extended {
            self.chunks.push_back(Chunk { start: self.end, bytes: Bytes::Known(known) });
        }
        self.end += known.len() as u64;
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
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
    }

    fn add_chunk(&mut self, size: usize) {
        let reused = if size == LARGEST { self.reusable.pop() } else { None };
        let bytes = reused.unwrap_or_else(|| {
            let new = Vec::with_capacity(size);
            self.allocated += new.capacity();
            new
        });
        self.chunks.push_back(Chunk { start: self.end, bytes: Bytes::Own(bytes) });
    }

    /// Ends a record after the last byte written.
    pub(super) fn end_record(&mut self) {
        if self.start == self.end {
            return;
        }
        let Records(ends) = &mut **self.records.get_or_insert_default();
        if ends.back() != Some(&self.end) {
            ends.push_back(self.end);
        }
    }

    /// Returns the end of the record that contains `offset`, or of the data. A segment does not extend beyond
    /// it.
    #[inline]
    pub(super) fn record_end(&self, offset: u64) -> u64 {
        let Some(records) = &self.records else { return self.end };
        let next = records.0.partition_point(|end| *end <= offset);
        records.0.get(next).copied().unwrap_or(self.end)
    }

    pub(super) fn has_records(&self) -> bool {
        self.records.is_some()
    }

    /// Returns true if a record ends at `offset`.
    pub(super) fn ends_record(&self, offset: u64) -> bool {
        self.records.as_ref().is_some_and(|records| records.0.binary_search(&offset).is_ok())
    }

    /// Returns the bytes in `range` that the buffer holds.
    pub(super) fn payloads(&self, range: Range<u64>) -> impl Iterator<Item = Payload<'_>> {
        let mut at = range.start.max(self.start);
        let end = range.end.min(self.end);
        let first = self.chunk_of(at);
        self.chunks.range(first..).map_while(move |chunk| {
            if at >= end {
                return None;
            }
            let from = (at - chunk.start) as usize;
            at = chunk.end().min(end);
            Some(chunk.bytes.payload(from..(at - chunk.start) as usize))
        })
    }

    /// Returns the index of the chunk that contains `offset`, or the number of chunks.
    fn chunk_of(&self, offset: u64) -> usize {
        if offset >= self.end {
            return self.chunks.len();
        }
        // The known stream is one chunk. Large buffers consist of chunks of equal size, so the expected position is
        // checked first.
        let first = match self.chunks.front() {
            Some(first) if offset < first.end() => return 0,
            Some(first) => first.start,
            None => self.start,
        };
        let guess = ((offset - first) * self.chunks.len() as u64 / (self.end - first)) as usize;
        match self.chunks.get(guess) {
            Some(chunk) if chunk.start <= offset && offset < chunk.end() => guess,
            _ => self.chunks.partition_point(|chunk| chunk.end() <= offset),
        }
    }

    /// Releases everything below `offset`, which has been acknowledged.
    pub(super) fn release_below(&mut self, offset: u64) {
        self.start = offset.clamp(self.start, self.end);
        self.release_records();
        while self.chunks.front().is_some_and(|first| first.end() <= self.start) {
            if self.chunks.len() == 1 && self.spare() > 0 {
                // The chunk has room for more data.
                break;
            }
            if let Some(first) = self.chunks.pop_front() {
                self.recycle(first.bytes);
            }
        }
        let limit = if chunk_for(self.len()) < LARGEST { 0 } else { self.chunks.len() };
        if self.reusable.len() > limit {
            self.allocated -= (self.reusable.len() - limit) * LARGEST;
            self.reusable.truncate(limit);
        }
    }

    fn release_records(&mut self) {
        let Some(records) = &mut self.records else { return };
        let done = records.0.partition_point(|end| *end <= self.start);
        records.0.drain(..done);
        if records.0.is_empty() {
            self.records = None;
        }
    }

    fn recycle(&mut self, bytes: Bytes) {
        self.allocated -= bytes.memory();
        // A chunk that an outgoing packet still refers to is not reused, although its data was acknowledged.
        if let Bytes::Shared(bytes, _) = bytes
            && bytes.capacity() == LARGEST
            && let Ok(mut bytes) = Arc::try_unwrap(bytes)
        {
            bytes.clear();
            self.allocated += bytes.capacity();
            self.reusable.push(bytes);
        }
    }

    /// Returns the bytes of memory in use.
    pub(super) fn cost(&self) -> usize {
        self.allocated + self.records.as_ref().map_or(0, |records| records.0.capacity() * size_of::<u64>())
    }

    /// Returns the bytes of memory that `len` more bytes would take.
    pub(super) fn growth(&self, len: usize) -> usize {
        let Some(beyond) = len.checked_sub(self.spare()).filter(|beyond| *beyond > 0) else { return 0 };
        let size = chunk_for(self.len() + len);
        let reusable = if size == LARGEST { self.reusable.len() * LARGEST } else { 0 };
        beyond.next_multiple_of(size).saturating_sub(reusable)
    }

    /// Returns the number of bytes that fit without allocating memory.
    pub(super) fn spare(&self) -> usize {
        self.chunks.back().map_or(0, |last| last.bytes.spare())
    }

    /// Frees the buffer of an idle connection.
    pub(super) fn shrink_if_empty(&mut self) {
        if self.start == self.end && self.allocated > 0 {
            *self = Self::new(self.start, self.limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use airwire::rng::Stream;
    use airwire::text::Text;

    use super::*;

    fn byte(offset: u64) -> u8 {
        (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    fn bytes(range: Range<u64>) -> Vec<u8> {
        range.map(byte).collect()
    }

    fn copied(buffer: &SendBuffer, range: Range<u64>) -> Vec<u8> {
        let mut out = Vec::new();
        buffer.payloads(range).for_each(|payload| payload.copy_to(&mut out));
        out
    }

    #[test]
    fn any_range_reads_back_written_bytes() {
        let mut random = Stream::new(1, "send buffer");
        for limit in [10, 1_000, 60_000, 400_000, 700_000] {
            let mut buffer = SendBuffer::new(1, limit);
            let mut start = 1;
            for round in 0..400 {
                let wanted = 1 + random.below(limit as u64) as usize;
                let end = buffer.end();
                let room = buffer.free();
                let growth = buffer.growth(wanted.min(room));
                let before = buffer.cost();
                assert_eq!(buffer.write(Payload::Copied(&bytes(end..end + wanted as u64))), wanted.min(room));
                assert_eq!(buffer.cost() - before, growth, "round {round}: {wanted}");
                assert_eq!(buffer.end(), end + wanted.min(room) as u64);
                let from = start + random.below(1 + buffer.len() as u64);
                let to = from + random.below(1 + buffer.end() - from);
                assert_eq!(copied(&buffer, from..to), bytes(from..to), "round {round}");
                start += random.below(1 + buffer.len() as u64);
                buffer.release_below(start);
                assert_eq!(buffer.len() as u64, buffer.end() - start);
                let sum: usize = buffer.chunks.iter().map(|chunk| chunk.bytes.memory()).sum();
                assert_eq!(buffer.cost(), sum + buffer.reusable.len() * LARGEST);
            }
        }
    }

    #[test]
    fn segments_reach_to_end_of_their_record() {
        let mut buffer = SendBuffer::new(1, 100);
        buffer.end_record();
        buffer.write(Payload::Copied(b"abc"));
        buffer.end_record();
        buffer.end_record();
        buffer.write(Payload::Copied(b"defg"));
        buffer.end_record();
        buffer.write(Payload::Copied(b"h"));
        assert_eq!([1, 3, 4, 7, 8, 9].map(|offset| buffer.record_end(offset)), [4, 4, 8, 8, 9, 9]);
        assert_eq!([1, 4, 8, 9].map(|offset| buffer.ends_record(offset)), [false, true, true, false]);
        buffer.release_below(4);
        assert_eq!((buffer.record_end(4), buffer.ends_record(4)), (8, false));
        buffer.release_below(9);
        assert!(buffer.records.is_none(), "{:?}", buffer.records);
    }

    #[test]
    fn out_of_range_bytes_are_not_copied() {
        let mut buffer = SendBuffer::new(1, 100);
        assert_eq!(copied(&buffer, 0..9), b"");
        buffer.write(Payload::Copied(b"abcdef"));
        buffer.release_below(3);
        assert_eq!(copied(&buffer, 0..9), b"cdef");
        assert_eq!(copied(&buffer, 5..5), b"");
        assert_eq!(copied(&buffer, 7..9), b"");
        buffer.release_below(1);
        assert_eq!((buffer.len(), buffer.end()), (4, 7), "an old offset changes nothing");
        buffer.release_below(50);
        assert_eq!((buffer.len(), buffer.end()), (0, 7), "no more is released than was written");
    }

    #[test]
    fn buffer_memory_shrinks_with_window() {
        let mut buffer = SendBuffer::new(1, 4 << 20);
        buffer.write(Payload::Copied(&bytes(1..1 + (1 << 20))));
        assert_eq!(buffer.cost(), 1 << 20);
        for _ in 0..100 {
            let end = buffer.end();
            buffer.release_below(end - 5_000);
            buffer.write(Payload::Copied(&bytes(end..end + 1_000)));
        }
        assert!(buffer.cost() <= 6_000 + 2 * USUAL, "{} bytes allocated for 6000", buffer.cost());
        buffer.release_below(buffer.end());
        buffer.shrink_if_empty();
        assert_eq!((buffer.cost(), buffer.chunks.capacity(), buffer.len()), (0, 0, 0));
    }

    #[test]
    fn sliding_window_needs_no_new_memory() {
        let mut buffer = SendBuffer::new(1, 4 << 20);
        buffer.write(Payload::Copied(&bytes(1..1 + (1 << 20))));
        for round in 0..40 {
            let end = buffer.end();
            buffer.release_below(end - (1 << 20) + 65_536);
            assert_eq!(buffer.growth(65_536), 0, "round {round}");
            buffer.write(Payload::Copied(&bytes(end..end + 65_536)));
        }
        assert_eq!(buffer.cost(), 1 << 20);
    }

    #[test]
    fn shared_chunks_stay_intact_after_release() {
        let mut buffer = SendBuffer::new(0, 4 << 20);
        buffer.write(Payload::Copied(&bytes(0..(1 << 20) + 100)));
        let chunk = LARGEST as u64;
        let across = chunk - 10..chunk + 10;
        let payloads: Vec<_> = buffer.payloads(across.clone()).collect();
        let [Payload::Shared(first, end), Payload::Shared(second, start)] = &payloads[..] else {
            panic!("expected two shared chunks, got {payloads:?}")
        };
        assert_eq!((end.clone(), start.clone()), (LARGEST - 10..LARGEST, 0..10));
        let sent = [Arc::clone(first), Arc::clone(second)];
        assert!(
            matches!(buffer.payloads((1 << 20)..(1 << 20) + 100).next(), Some(Payload::Copied(_))),
            "the last chunk may still grow"
        );

        let cost = buffer.cost();
        buffer.release_below(3 * chunk);
        assert_eq!(buffer.cost(), cost - 2 * LARGEST, "one of three chunks is kept for reuse");
        buffer.write(Payload::Copied(&[0xff; 2 * LARGEST]));
        let sent = [&sent[0][LARGEST - 10..], &sent[1][..10]].concat();
        assert_eq!(sent, bytes(across), "shared chunks are not overwritten");
    }

    #[test]
    fn memory_of_application_is_not_copied() {
        let mut buffer = SendBuffer::new(0, 200_000);
        let memory = Arc::new(bytes(0..100_000));
        buffer.write(Payload::Copied(&bytes(0..10)));
        assert_eq!(buffer.write(Payload::Shared(&memory, 10..60_000)), 59_990);
        assert_eq!(buffer.write(Payload::Shared(&memory, 60_000..100_000)), 40_000);
        assert_eq!((buffer.chunks.len(), buffer.cost()), (2, SMALLEST + 99_990));
        assert_eq!(copied(&buffer, 0..100_000), *memory);
        let sent: Vec<_> = buffer.payloads(50_000..70_000).collect();
        assert!(
            matches!(&sent[..], [Payload::Shared(sent, range)]
                if Arc::ptr_eq(sent, &memory) && *range == (50_000..70_000)),
            "{sent:?}"
        );

        assert_eq!(buffer.write(Payload::Shared(&memory, 0..100_000)), 100_000);
        assert_eq!(buffer.write(Payload::Shared(&memory, 0..100_000)), 0, "the buffer is full");
        buffer.release_below(100_000);
        assert_eq!((buffer.chunks.len(), buffer.cost()), (1, 100_000));
        buffer.release_below(200_000);
        assert_eq!((buffer.chunks.len(), buffer.cost(), Arc::strong_count(&memory)), (0, 0, 1));

        buffer.write(Payload::Shared(&memory, 7..10));
        assert_eq!((Arc::strong_count(&memory), buffer.cost()), (1, SMALLEST), "little data is copied");
    }

    #[test]
    fn small_write_allocates_smallest_chunk() {
        let mut buffer = SendBuffer::new(1, 1 << 20);
        buffer.write(Payload::Copied(b"x"));
        assert_eq!(buffer.cost(), SMALLEST);
        buffer.write(Payload::Copied(&[7; 63]));
        assert_eq!((buffer.cost(), buffer.spare()), (SMALLEST, 0));
    }

    #[test]
    fn known_text_takes_no_memory_and_mixes_with_bytes() {
        let mut buffer = SendBuffer::new(1, 100_000);
        let (first, second) = (Known::new(5_000..35_000), Known::new(35_000..65_000));
        assert_eq!(buffer.write(Payload::Known(first)), 30_000);
        assert_eq!(buffer.write(Payload::Known(second)), 30_000);
        assert_eq!((buffer.chunks.len(), buffer.cost()), (1, 0));
        buffer.write(Payload::Copied(&bytes(0..1_000)));
        assert_eq!(buffer.write(Payload::Known(Known::new(0..90_000))), 39_000, "only as much as fits");
        let mut expected = Text::Known(Known::new(5_000..65_000)).to_vec();
        expected.extend(bytes(0..1_000));
        expected.extend(Text::Known(Known::new(0..39_000)).to_vec());
        assert_eq!(copied(&buffer, 1..100_001), expected);
        buffer.release_below(70_000);
        assert_eq!(copied(&buffer, 70_000..100_001), expected[69_999..]);
    }
}
