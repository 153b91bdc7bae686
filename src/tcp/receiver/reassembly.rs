//! Data received above RCV.NXT. Its memory use depends on the amount of data, not on its position in the
//! window.

use std::collections::BTreeMap;

use airwire::text::Text;

use super::stored_text::StoredText;
use crate::ranges::RangeSet;

/// Out-of-order data in pieces that never overlap. The first copy of a byte is kept: a later one must not
/// change data that was acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct OutOfOrder {
    ranges: RangeSet,
    /// The text of the ranges, keyed by the offset of each piece.
    pieces: BTreeMap<u64, StoredText>,
    cost: usize,
}

/// Maximum size of a piece that consecutive segments extend. It limits the cost of moving a piece.
const MAX_PIECE: usize = 16 << 10;
/// Maximum size of two adjacent pieces that are merged, in any order of arrival. Merging keeps the number of
/// pieces close to the number of ranges.
const MAX_MERGED: usize = 1 << 10;
/// Memory of a piece besides its data: its entries in the tree and in the list of ranges, and the allocator's
/// overhead.
pub(super) const OVERHEAD: usize = 128;
/// Maximum number of ranges, however large the buffer is, if a peer sends every second byte.
const MAX_RANGES: usize = 4096;
/// Number of ranges that are always allowed, however small the buffer is.
const MIN_RANGES: usize = 64;

/// Returns the maximum number of ranges for a buffer of `limit` bytes. Segments with at least 64 bytes of
/// data never reach it, and the overhead of all ranges does not exceed the size of the buffer.
pub(super) fn max_ranges(limit: usize) -> usize {
    (limit / OVERHEAD).clamp(MIN_RANGES, MAX_RANGES)
}

impl OutOfOrder {
    pub(super) fn ranges(&self) -> &RangeSet {
        &self.ranges
    }

    /// Returns the bytes of memory in use.
    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// Stores the new part of `text`, which starts at `offset` above a hole.
    pub(super) fn insert(&mut self, offset: u64, text: Text<'_>) {
        let Self { ranges, pieces, cost } = self;
        ranges.insert_with(offset..offset + text.len() as u64, |fresh| {
            let text = text.slice((fresh.start - offset) as usize..(fresh.end - offset) as usize);
            *cost = (*cost).wrapping_add_signed(add_piece(pieces, fresh.start, text));
        });
    }

    /// Appends `text`, which starts at `next` (RCV.NXT), and the stored data that it connects to, to `data`.
    /// Returns the new RCV.NXT.
    pub(super) fn append_in_order(&mut self, next: u64, text: Text<'_>, data: &mut StoredText) -> u64 {
        let Self { ranges, pieces, cost } = self;
        let mut end = next;
        ranges.insert_with(next..next + text.len() as u64, |fresh| {
            let text = text.slice((fresh.start - next) as usize..(fresh.end - next) as usize);
            if fresh.start == end {
                data.append(text);
                end = fresh.end;
            } else {
                *cost = (*cost).wrapping_add_signed(add_piece(pieces, fresh.start, text));
            }
        });
        while let Some(first) = pieces.first_entry().filter(|first| *first.key() == end) {
            let piece = first.remove();
            *cost -= cost_of(&piece);
            end += piece.len() as u64;
            data.append_stored(&piece);
        }
        ranges.remove_below(end);
        end
    }

    /// Drops data, highest offset first, until `enough` bytes of memory are free or nothing is left. Returns
    /// the number of data bytes dropped.
    pub(super) fn prune(&mut self, enough: usize) -> u64 {
        let (mut freed, mut bytes) = (0, 0);
        while freed < enough
            && let Some((start, piece)) = self.pieces.pop_last()
        {
            self.ranges.remove_from(start);
            freed += cost_of(&piece);
            bytes += piece.len() as u64;
        }
        self.cost -= freed;
        bytes
    }

    /// Drops the last range. Returns the number of its bytes.
    pub(super) fn prune_last_range(&mut self) -> u64 {
        let Some(last) = self.ranges.last().cloned() else { return 0 };
        self.drop_from(last.start);
        last.end - last.start
    }

    /// Drops data at or above `offset`.
    pub(super) fn drop_from(&mut self, offset: u64) {
        for piece in self.pieces.split_off(&offset).into_values() {
            self.cost -= cost_of(&piece);
        }
        if let Some(mut last) = self.pieces.last_entry() {
            let len = offset - last.key();
            last.get_mut().truncate(len as usize);
        }
        self.ranges.remove_from(offset);
    }
}

fn cost_of(piece: &StoredText) -> usize {
    piece.memory() + OVERHEAD
}

/// Adds `text` to the pieces. Returns the change in memory use.
fn add_piece(pieces: &mut BTreeMap<u64, StoredText>, at: u64, text: Text<'_>) -> isize {
    // In the common case, the data follows everything stored so far.
    let is_last = pieces.last_key_value().is_none_or(|(start, _)| *start < at);
    let before = match is_last {
        true => pieces.last_entry().map(|last| (*last.key(), last.into_mut())),
        false => pieces.range_mut(..at).next_back().map(|(start, piece)| (*start, piece)),
    };
    let extended = before.filter(|(start, piece)| {
        *start + piece.len() as u64 == at
            && piece.len() + text.len() <= MAX_PIECE
            && piece.is_continued_by(text)
    });
    let (start, cost) = match extended {
        Some((start, piece)) => (start, append(piece, text)),
        None => {
            let piece = StoredText::from(text);
            let cost = cost_of(&piece) as isize;
            pieces.insert(at, piece);
            (at, cost)
        }
    };
    if is_last { cost } else { cost + merge_small(pieces, start, at + text.len() as u64) }
}

/// Merges the piece from `start` to `end` with the one that starts at `end`, if both are small. Returns the
/// change in memory use.
fn merge_small(pieces: &mut BTreeMap<u64, StoredText>, start: u64, end: u64) -> isize {
    let len = (end - start) as usize;
    let Some(after) = pieces.get(&end).filter(|after| len + after.len() <= MAX_MERGED) else { return 0 };
    if !pieces.get(&start).is_some_and(|piece| piece.is_continued_by(after.first_slice())) {
        return 0;
    }
    let freed = cost_of(after);
    let Some(after) = pieces.remove(&end) else { return 0 };
    pieces.get_mut(&start).map_or(0, |piece| append(piece, after.first_slice())) - freed as isize
}

/// Appends `text`. The capacity is doubled so that bytes are rarely moved, but never beyond the size of a
/// whole piece. Returns the change in memory use.
fn append(piece: &mut StoredText, text: Text<'_>) -> isize {
    let (before, needed) = (piece.memory(), piece.len() + text.len());
    if let StoredText::Bytes(bytes) = piece
        && needed > before
    {
        bytes.reserve_exact((2 * bytes.len()).min(MAX_PIECE).max(needed) - bytes.len());
    }
    piece.append(text);
    (piece.memory() - before) as isize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(held: &OutOfOrder) -> usize {
        held.pieces.len()
    }

    fn check_cost(held: &OutOfOrder) {
        assert_eq!(held.cost, held.pieces.values().map(cost_of).sum::<usize>());
    }

    #[test]
    fn single_byte_at_window_edge_costs_little_memory() {
        let mut held = OutOfOrder::default();
        held.insert(4 << 20, Text::Bytes(b"x"));
        check_cost(&held);
        assert!(held.cost() <= OVERHEAD + 8, "{} bytes", held.cost());
    }

    #[test]
    fn single_bytes_merge_in_any_order() {
        let order: [fn(u64) -> u64; 3] = [|n| n, |n| 9_999 - n, |n| n * 7_919 % 10_000];
        for position in order {
            let mut held = OutOfOrder::default();
            for n in 0..10_000 {
                let at = position(n);
                held.insert(10 + at, Text::Bytes(&[at as u8]));
            }
            check_cost(&held);
            assert_eq!(held.ranges().len(), 1);
            assert!(pieces(&held) <= 2 * 10_000 / MAX_MERGED + 2, "{} pieces", pieces(&held));
            assert!(held.cost() <= 2 * 10_000 + OVERHEAD * pieces(&held), "{} bytes", held.cost());
            let mut data = StoredText::default();
            assert_eq!(held.append_in_order(9, Text::Bytes(&[255]), &mut data), 10_010);
            assert_eq!((held.cost(), pieces(&held), held.ranges().len()), (0, 0, 0));
            let mut bytes = vec![0; data.len()];
            data.copy_to(&mut bytes);
            assert!(bytes.iter().skip(1).enumerate().all(|(n, byte)| *byte == n as u8), "bytes differ");
        }
    }

    #[test]
    fn adjacent_pieces_merge_up_to_one_kibibyte() {
        for (len, expected) in [(MAX_MERGED / 2, 1), (MAX_MERGED / 2 + 1, 2)] {
            let mut held = OutOfOrder::default();
            held.insert(10_000, Text::Bytes(&[1; MAX_MERGED / 2]));
            held.insert(10_000 - len as u64, Text::Bytes(&vec![2; len]));
            check_cost(&held);
            assert_eq!((pieces(&held), held.ranges().len()), (expected, 1), "{len} bytes");
        }
    }

    #[test]
    fn prune_drops_highest_ranges_first() {
        let mut held = OutOfOrder::default();
        for n in 0..10 {
            held.insert(100 * n + 50, Text::Bytes(&[n as u8; 20]));
        }
        assert_eq!(held.prune(1), 20);
        assert_eq!(held.ranges().last(), Some(&(850..870)));
        assert_eq!(held.prune(2 * (OVERHEAD + 20)), 40);
        assert_eq!(held.prune_last_range(), 20);
        check_cost(&held);
        assert_eq!(held.ranges().last(), Some(&(550..570)));
        assert_eq!(held.prune(usize::MAX), 120);
        assert_eq!((held.cost(), pieces(&held), held.ranges().len()), (0, 0, 0));
    }
}
