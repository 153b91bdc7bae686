//! Less memory for what may be missing: there may be a hundred thousand connections at a time.

use std::num::NonZero;

/// What the allocator takes for itself, about.
pub(super) const ALLOCATION: usize = 16;

/// Octets of heap that a vector takes, with the holes that it has left where it was before it grew: they are of little
/// use to others.
pub(super) fn vector<T>(capacity: usize) -> usize {
    const FIRST: usize = 4;
    match capacity {
        0 => 0,
        _ => (2 * capacity).saturating_sub(FIRST).max(capacity) * size_of::<T>() + ALLOCATION,
    }
}

/// What few connections need, made when one does.
#[derive(Debug)]
pub(super) struct Seldom<T>(Option<Box<T>>);

impl<T> Default for Seldom<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Default> Seldom<T> {
    pub(super) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    pub(super) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// To be changed. Where nothing changes, this is not to be called.
    pub(super) fn made(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }

    pub(super) fn into_inner(self) -> T {
        self.0.map_or_else(T::default, |inner| *inner)
    }
}

/// An offset or a time that may be missing, in eight octets: neither comes near `u64::MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Maybe(Option<NonZero<u64>>);

impl Maybe {
    pub(super) fn offset(offset: u64) -> Self {
        Self(NonZero::new(!offset))
    }

    /// Before zero nothing happens.
    pub(super) fn time(ns: i64) -> Self {
        Self::offset(ns.max(0).unsigned_abs())
    }

    pub(super) fn as_offset(self) -> Option<u64> {
        self.0.map(|kept| !kept.get())
    }

    pub(super) fn as_time(self) -> Option<i64> {
        self.as_offset().map(|ns| ns as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_not_missing() {
        for offset in [0, 1, 1 << 32, 1 << 63] {
            assert_eq!(Maybe::offset(offset).as_offset(), Some(offset));
        }
        assert_eq!((Maybe::time(0).as_time(), Maybe::time(-5).as_time()), (Some(0), Some(0)));
        assert_eq!((Maybe::default().as_time(), size_of::<Maybe>()), (None, 8));
    }
}
