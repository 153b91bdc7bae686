//! Bytes over time in a bounded number of bins. When there are too many, pairs of bins are merged.

use crate::compact::heap_of_vec;
use crate::connection::findings::SeriesFindings;

/// Maximum number of bins in a series.
pub(super) const BINS: usize = 200;
/// Initial width of a bin in nanoseconds.
const NARROWEST: i64 = 1_000_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    /// Width of a bin in nanoseconds, or 0 before the first byte.
    width: i64,
    begin: i64,
    /// The entries in chronological order. A bin has one entry for each of its kinds of bytes.
    entries: Vec<Entry>,
}

/// Bytes of one kind in one bin. A bin with 4 GiB or more has several entries.
#[derive(Clone, Copy, Debug)]
struct Entry {
    bytes: u32,
    bin: u8,
    what: Counted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Sent,
    Acked,
}

impl Series {
    pub(super) fn add(&mut self, at: i64, what: Counted, bytes: u64) {
        if self.width == 0 {
            (self.width, self.begin) = (NARROWEST, at);
        }
        let passed = at.saturating_sub(self.begin).max(0);
        let mut bin = passed / self.width;
        while bin >= BINS as i64 {
            self.width *= 2;
            bin = passed / self.width;
            for entry in std::mem::take(&mut self.entries) {
                self.put(entry.bin / 2, entry.what, u64::from(entry.bytes));
            }
        }
        self.put(bin as u8, what, bytes);
    }

    fn put(&mut self, bin: u8, what: Counted, mut bytes: u64) {
        let bin = self.entries.last().map_or(bin, |last| last.bin.max(bin));
        let same = self.entries.iter_mut().rev().take_while(|entry| entry.bin == bin);
        for entry in same.filter(|entry| entry.what == what) {
            let more = bytes.min(u64::from(u32::MAX - entry.bytes)) as u32;
            entry.bytes += more;
            bytes -= u64::from(more);
            if bytes == 0 {
                return;
            }
        }
        while bytes > 0 {
            let most = bytes.min(u64::from(u32::MAX)) as u32;
            self.entries.push(Entry { bytes: most, bin, what });
            bytes -= u64::from(most);
        }
    }

    /// Returns the time of the first byte.
    pub(super) fn began(&self) -> Option<i64> {
        (self.width > 0).then_some(self.begin)
    }

    /// Returns the heap memory in bytes.
    pub(super) fn heap(&self) -> usize {
        heap_of_vec::<Entry>(self.entries.capacity())
    }

    pub(super) fn findings(&self) -> SeriesFindings {
        let bins = self.entries.last().map_or(0, |last| usize::from(last.bin) + 1);
        let column = |what: Counted| {
            let mut column = vec![0; bins];
            for entry in self.entries.iter().filter(|entry| entry.what == what) {
                column[usize::from(entry.bin)] += u64::from(entry.bytes);
            }
            column
        };
        SeriesFindings {
            begin_seconds: self.begin as f64 / 1e9,
            bin_seconds: self.width as f64 / 1e9,
            sent_bytes: column(Counted::Sent),
            acked_bytes: column(Counted::Acked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_connection_widens_bins_without_losing_bytes() {
        let mut series = Series::default();
        for second in 0..3600 {
            series.add(5_000_000_000 + second * 1_000_000_000, Counted::Sent, 10);
            series.add(5_000_000_000 + second * 1_000_000_000, Counted::Acked, 9);
        }
        let findings = series.findings();
        assert_eq!(findings.begin_seconds, 5.0);
        assert_eq!(
            findings.bin_seconds,
            0.001 * f64::from(1 << 15),
            "the smallest power of two at which 3600 s fit into 200 bins"
        );
        assert!(findings.sent_bytes.len() > BINS / 2 && findings.sent_bytes.len() <= BINS);
        assert_eq!(findings.sent_bytes.iter().sum::<u64>(), 36_000);
        assert_eq!(findings.acked_bytes.iter().sum::<u64>(), 32_400);
    }

    #[test]
    fn bins_count_gigabytes_exactly() {
        let mut series = Series::default();
        for octets in [u64::from(u32::MAX) - 1, 5, 1 << 33] {
            series.add(0, Counted::Acked, octets);
            series.add(0, Counted::Sent, 1);
        }
        series.add(1_000_000_000, Counted::Sent, 1);
        let findings = series.findings();
        assert_eq!(findings.acked_bytes[0], (1 << 32) + 3 + (1 << 33));
        assert_eq!((findings.sent_bytes[0], findings.sent_bytes.iter().sum::<u64>()), (3, 4));
        assert_eq!(findings.sent_bytes.len(), findings.acked_bytes.len());
    }

    #[test]
    fn clock_jumps_do_not_lose_bytes() {
        let mut series = Series::default();
        series.add(0, Counted::Sent, 1);
        series.add(i64::MAX, Counted::Sent, 1);
        series.add(-5, Counted::Sent, 1);
        assert_eq!(series.findings().sent_bytes.iter().sum::<u64>(), 3);
    }
}
