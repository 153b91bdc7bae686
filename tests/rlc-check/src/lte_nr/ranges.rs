//! Sets of octets.

use std::ops::Range;

/// Octets of a unit as disjoint ascending ranges, separated by gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<Range<u32>>);

impl Ranges {
    pub(super) fn add(&mut self, range: Range<u32>) {
        if range.is_empty() {
            return;
        }
        self.0.push(range);
        self.0.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<u32>> = Vec::with_capacity(self.0.len());
        for range in self.0.drain(..) {
            match merged.last_mut().filter(|last| last.end >= range.start) {
                Some(last) => last.end = last.end.max(range.end),
                None => merged.push(range),
            }
        }
        self.0 = merged;
    }

    pub(super) fn remove(&mut self, range: &Range<u32>) {
        let cut = |own: Range<u32>| {
            [own.start..own.end.min(range.start), own.start.max(range.end)..own.end]
                .into_iter()
                .filter(|rest| !rest.is_empty())
        };
        self.0 = std::mem::take(&mut self.0).into_iter().flat_map(cut).collect();
    }

    pub(super) fn contains(&self, range: &Range<u32>) -> bool {
        self.0.iter().any(|own| own.start <= range.start && range.end <= own.end)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The end of the last range, or 0.
    pub(super) fn end(&self) -> u32 {
        self.0.last().map_or(0, |last| last.end)
    }

    /// The octets below the last range that are not in the set.
    pub(super) fn holes(&self) -> impl Iterator<Item = Range<u32>> {
        let starts = std::iter::once(0).chain(self.0.iter().map(|range| range.end));
        starts.zip(&self.0).map(|(start, next)| start..next.start).filter(|hole| !hole.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_and_split() {
        let mut set = Ranges::default();
        for range in [10..20, 30..40, 0..5, 20..25] {
            set.add(range);
        }
        assert_eq!(set.0, [0..5, 10..25, 30..40]);
        assert_eq!(set.holes().collect::<Vec<_>>(), [5..10, 25..30]);
        assert!(set.contains(&(12..25)) && !set.contains(&(4..11)));
        set.remove(&(12..32));
        assert_eq!(set.0, [0..5, 10..12, 32..40]);
        assert_eq!(set.end(), 40);
    }
}
