//! Values over time, in at most as many bins as a picture can show.

/// Maximum number of bins, twice the number of pixel columns of a picture.
const MAX_BINS: usize = 4096;
/// Smallest width of a bin in nanoseconds.
const MIN_WIDTH: i64 = 1_000_000;

/// Values over time in bins of equal width. The width doubles when there are too many bins.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    /// The width of a bin in nanoseconds.
    width: i64,
    /// The start of the first bin in nanoseconds. `None` if no value was added.
    begin: Option<i64>,
    bins: Vec<Option<Bin>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Bin {
    sum: f64,
    max: f64,
    last: f64,
}

impl Default for Bins {
    fn default() -> Self {
        Self { width: MIN_WIDTH, begin: None, bins: Vec::new() }
    }
}

impl Bins {
    /// Adds a value at a time in nanoseconds. A time before the first value's time counts as the first
    /// value's time.
    pub fn add(&mut self, at: i64, value: f64) {
        let begin = *self.begin.get_or_insert(at);
        let after = at.saturating_sub(begin).max(0);
        while after / self.width >= MAX_BINS as i64 {
            self.halve();
        }
        let index = (after / self.width) as usize;
        if self.bins.len() <= index {
            self.bins.resize(index + 1, None);
        }
        let new = Bin { sum: value, max: value, last: value };
        self.bins[index] = Some(self.bins[index].map_or(new, |bin| bin.merged(new)));
    }

    fn halve(&mut self) {
        self.width *= 2;
        let pairs = self.bins.chunks(2).map(|pair| match pair {
            [Some(first), Some(second)] => Some(first.merged(*second)),
            [first, second] => first.or(*second),
            single => single[0],
        });
        self.bins = pairs.collect();
    }

    /// Returns the width of a bin in seconds.
    pub fn width(&self) -> f64 {
        self.width as f64 / 1e9
    }

    fn filled(&self) -> impl Iterator<Item = (f64, Bin)> {
        let begin = self.begin.unwrap_or_default();
        let time = move |index: usize| begin.saturating_add(index as i64 * self.width) as f64 / 1e9;
        self.bins.iter().enumerate().filter_map(move |(index, bin)| Some((time(index), (*bin)?)))
    }

    /// Returns the start in seconds and the sum of the values of each bin that is not empty.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.filled().map(|(at, bin)| (at, bin.sum))
    }

    /// Returns, for values that hold until the next change, the maximum of each bin, and then the last value
    /// if it is smaller.
    pub fn levels(&self) -> impl Iterator<Item = (f64, f64)> {
        let end = self.width() * 0.999;
        self.filled().flat_map(move |(at, bin)| {
            [Some((at, bin.max)), (bin.last < bin.max).then_some((at + end, bin.last))].into_iter().flatten()
        })
    }
}

impl Bin {
    fn merged(self, later: Self) -> Self {
        Self { sum: self.sum + later.sum, max: self.max.max(later.max), last: later.last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_bins_is_bounded() {
        let mut bins = Bins::default();
        for second in 0..100_000 {
            bins.add(second * 1_000_000_000, 1.0);
        }
        assert!(bins.bins.len() <= MAX_BINS);
        let all: Vec<(f64, f64)> = bins.points().collect();
        assert_eq!(all.iter().map(|(_, sum)| sum).sum::<f64>(), 100_000.0);
        assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn levels_keep_peak_and_last_value_per_bin() {
        let mut bins = Bins::default();
        for (at, level) in [(0, 1500.0), (100_000, 3000.0), (200_000, 0.0), (5_000_000, 1500.0)] {
            bins.add(at, level);
        }
        let levels: Vec<f64> = bins.levels().map(|(_, level)| level).collect();
        assert_eq!(levels, [3000.0, 0.0, 1500.0]);
    }
}
