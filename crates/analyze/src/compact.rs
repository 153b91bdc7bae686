//! Types that take less memory when they are empty, since there may be 100,000 connections at a time.

use std::num::NonZero;

/// Approximate overhead of an allocation in bytes.
pub(crate) const ALLOCATOR_OVERHEAD: usize = 16;

/// Returns the heap memory in bytes of a vector with this capacity. The result includes the smaller buffers
/// from which the vector grew, because the allocator can rarely reuse such buffers.
pub(crate) fn heap_of_vec<T>(capacity: usize) -> usize {
    const FIRST: usize = 4;
    match capacity {
        0 => 0,
        _ => (2 * capacity).saturating_sub(FIRST).max(capacity) * size_of::<T>() + ALLOCATOR_OVERHEAD,
    }
}

/// A value on the heap that few connections need. It is created when it is first modified.
#[derive(Clone, Debug)]
pub(crate) struct OnDemand<T>(Option<Box<T>>);

impl<T> Default for OnDemand<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Default> OnDemand<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Returns the value, and creates it if necessary. It should be called only to modify the value.
    pub(crate) fn get_or_default(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }

    /// Returns the result of `f` for the value, if there is one.
    pub(crate) fn map(&self, f: impl FnOnce(&T) -> T) -> Self {
        Self(self.0.as_deref().map(|value| Box::new(f(value))))
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.map_or_else(T::default, |inner| *inner)
    }
}

/// An optional offset or time in eight bytes. The value `u64::MAX` never occurs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompactOption(Option<NonZero<u64>>);

impl CompactOption {
    pub(crate) fn offset(offset: u64) -> Self {
        Self(NonZero::new(!offset))
    }

    /// Stores a time. Negative times become 0.
    pub(crate) fn time(ns: i64) -> Self {
        Self::offset(ns.max(0).unsigned_abs())
    }

    pub(crate) fn as_offset(self) -> Option<u64> {
        self.0.map(|stored| !stored.get())
    }

    pub(crate) fn as_time(self) -> Option<i64> {
        self.as_offset().map(|ns| ns as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_option_distinguishes_zero_from_none() {
        for offset in [0, 1, 1 << 32, 1 << 63] {
            assert_eq!(CompactOption::offset(offset).as_offset(), Some(offset));
        }
        let times = [0, -5].map(|ns| CompactOption::time(ns).as_time());
        assert_eq!(times, [Some(0); 2]);
        assert_eq!((CompactOption::default().as_time(), size_of::<CompactOption>()), (None, 8));
    }
}
