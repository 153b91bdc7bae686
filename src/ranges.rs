//! A set of stream offsets, kept as half-open ranges in ascending order.
//!
//! The receiver uses it for out-of-order data, and the sender for SACKed data.

use std::ops::Range;

/// A set of offsets. No two of its ranges overlap or touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: Vec<Range<u64>>,
}

impl RangeSet {
    /// Creates an empty set, which allocates no memory.
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of ranges (not of offsets).
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Iterates over the ranges, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> + ExactSizeIterator {
        self.ranges.iter()
    }

    /// Returns the lowest range.
    pub fn first(&self) -> Option<&Range<u64>> {
        self.ranges.first()
    }

    /// Returns the highest range.
    pub fn last(&self) -> Option<&Range<u64>> {
        self.ranges.last()
    }

    /// Removes all ranges.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Returns the range that contains `offset`.
    pub fn containing(&self, offset: u64) -> Option<&Range<u64>> {
        let after = self.count_while(|range| range.start <= offset);
        self.ranges[..after].last().filter(|r| offset < r.end)
    }

    /// Returns how many ranges `is_low` accepts. It must accept only the lowest ones. Most searches concern
    /// one of the highest ranges. Therefore the search begins there, with steps that double.
    fn count_while(&self, is_low: impl Fn(&Range<u64>) -> bool) -> usize {
        let (len, mut high, mut step) = (self.ranges.len(), self.ranges.len(), 1);
        while step <= len && !is_low(&self.ranges[len - step]) {
            high = len - step;
            step *= 2;
        }
        let low = len.saturating_sub(step);
        low + self.ranges[low..high].partition_point(is_low)
    }

    /// Returns the first part of `range` that is in the set.
    pub fn first_overlap(&self, range: Range<u64>) -> Option<Range<u64>> {
        let at = self.ranges.partition_point(|r| r.end <= range.start);
        let held = self.ranges.get(at).filter(|held| held.start < range.end)?;
        Some(held.start.max(range.start)..held.end.min(range.end))
    }

    /// Returns true if the set contains all of `range`.
    pub fn contains_range(&self, range: &Range<u64>) -> bool {
        self.containing(range.start).is_some_and(|r| range.end <= r.end)
    }

    /// Adds `range` and merges it with the ranges it touches. Calls `fresh` for each part that was not in the
    /// set before. Returns the range that contains `range` afterwards.
    pub fn insert_with(&mut self, range: Range<u64>, mut fresh: impl FnMut(Range<u64>)) -> Range<u64> {
        if range.is_empty() {
            return range;
        }
        // All ranges in `first..last` overlap or touch the new one.
        let first = self.count_while(|r| r.end < range.start);
        let touching = self.ranges[first..].iter().take_while(|r| r.start <= range.end).count();
        let last = first + touching;
        let mut cursor = range.start;
        for old in &self.ranges[first..last] {
            if cursor < old.start {
                fresh(cursor..old.start);
            }
            cursor = cursor.max(old.end);
        }
        if cursor < range.end {
            fresh(cursor..range.end);
        }
        if first == last {
            self.ranges.insert(first, range.clone());
            range
        } else {
            self.ranges[first].start = self.ranges[first].start.min(range.start);
            self.ranges[first].end = self.ranges[last - 1].end.max(range.end);
            if last - first > 1 {
                self.ranges.drain(first + 1..last);
            }
            self.ranges[first].clone()
        }
    }

    /// Adds `range` and merges it with the ranges it touches.
    pub fn insert(&mut self, range: Range<u64>) {
        self.insert_with(range, |_| ());
    }

    /// Removes all offsets at or above `offset`.
    pub fn remove_from(&mut self, offset: u64) {
        let kept = self.ranges.partition_point(|r| r.start < offset);
        self.ranges.truncate(kept);
        if let Some(last) = self.ranges.last_mut() {
            last.end = last.end.min(offset);
        }
    }

    /// Removes all offsets below `offset`.
    pub fn remove_below(&mut self, offset: u64) {
        let gone = self.ranges.partition_point(|r| r.end <= offset);
        self.ranges.drain(..gone);
        if self.ranges.is_empty() {
            self.ranges = Vec::new();
        }
        if let Some(first) = self.ranges.first_mut() {
            first.start = first.start.max(offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reference model: one bool per offset.
    fn model(bits: &[bool]) -> Vec<Range<u64>> {
        let mut out: Vec<Range<u64>> = Vec::new();
        for (i, _) in bits.iter().enumerate().filter(|(_, b)| **b) {
            match out.last_mut() {
                Some(r) if r.end == i as u64 => r.end += 1,
                _ => out.push(i as u64..i as u64 + 1),
            }
        }
        out
    }

    #[test]
    fn range_set_matches_bitmap_on_random_operations() {
        let mut x: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut random = move |n: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x % n
        };
        for _ in 0..200 {
            let (mut set, mut bits) = (RangeSet::new(), vec![false; 64]);
            for _ in 0..30 {
                let start = random(64);
                let end = start + random(64 - start + 1).min(9);
                if random(8) == 0 {
                    set.remove_below(start);
                    bits[..start as usize].fill(false);
                } else if random(12) == 0 {
                    set.remove_from(start);
                    bits[start as usize..].fill(false);
                } else {
                    let mut fresh = vec![];
                    let whole = set.insert_with(start..end, |r| fresh.extend(r));
                    assert!(end == start || set.iter().any(|range| *range == whole));
                    let expected: Vec<u64> = (start..end).filter(|i| !bits[*i as usize]).collect();
                    assert_eq!(fresh, expected);
                    bits[start as usize..end as usize].fill(true);
                }
                assert_eq!(set.iter().cloned().collect::<Vec<_>>(), model(&bits));
                for i in 0..64 {
                    assert_eq!(set.containing(i).is_some(), bits[i as usize]);
                }
            }
        }
    }
}
