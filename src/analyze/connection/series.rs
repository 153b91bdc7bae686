//! Octets over time in a bounded number of bins: when they run out, two become one.

use super::findings::SeriesFindings;

pub const BINS: usize = 200;
const NARROWEST: i64 = 1_000_000;

#[derive(Debug, Default)]
pub(super) struct Series {
    /// Nanoseconds; 0 before the first octet.
    width: i64,
    begin: i64,
    /// What left, and what was acknowledged.
    bins: Vec<[u64; 2]>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Sent,
    Acked,
}

impl Series {
    pub(super) fn add(&mut self, at: i64, what: What, bytes: u64) {
        if self.width == 0 {
            (self.width, self.begin) = (NARROWEST, at);
        }
        let passed = at.saturating_sub(self.begin).max(0);
        while passed / self.width >= BINS as i64 {
            self.width *= 2;
            let merged = self
                .bins
                .chunks(2)
                .map(|pair| pair.iter().fold([0, 0], |sum, bin| [sum[0] + bin[0], sum[1] + bin[1]]));
            self.bins = merged.collect();
        }
        let bin = (passed / self.width) as usize;
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, [0, 0]);
        }
        self.bins[bin][what as usize] += bytes;
    }

    pub(super) fn findings(&self) -> SeriesFindings {
        let column = |what: What| self.bins.iter().map(|bin| bin[what as usize]).collect();
        SeriesFindings {
            begin_seconds: self.begin as f64 / 1e9,
            bin_seconds: self.width as f64 / 1e9,
            sent_bytes: column(What::Sent),
            acked_bytes: column(What::Acked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_connection_has_wider_bins_and_loses_no_octet() {
        let mut series = Series::default();
        for second in 0..3600 {
            series.add(5_000_000_000 + second * 1_000_000_000, What::Sent, 10);
            series.add(5_000_000_000 + second * 1_000_000_000, What::Acked, 9);
        }
        let findings = series.findings();
        assert_eq!(findings.begin_seconds, 5.0);
        assert_eq!(
            findings.bin_seconds,
            0.001 * f64::from(1 << 15),
            "the first power of two with 3600 s in 200"
        );
        assert!(findings.sent_bytes.len() > BINS / 2 && findings.sent_bytes.len() <= BINS);
        assert_eq!(findings.sent_bytes.iter().sum::<u64>(), 36_000);
        assert_eq!(findings.acked_bytes.iter().sum::<u64>(), 32_400);
    }

    #[test]
    fn a_clock_that_leaps_is_no_matter() {
        let mut series = Series::default();
        series.add(0, What::Sent, 1);
        series.add(i64::MAX, What::Sent, 1);
        series.add(-5, What::Sent, 1);
        assert_eq!(series.findings().sent_bytes.iter().sum::<u64>(), 3);
    }
}
