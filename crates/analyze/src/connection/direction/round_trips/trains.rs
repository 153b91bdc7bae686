//! The rate of the bottleneck, from the spacing of packets that arrive in close succession (packet
//! dispersion).

/// Bins of the distribution of rates: four per octave, from 1 kbit/s to 16 Gbit/s.
const BINS: usize = 96;
const PER_OCTAVE: f64 = 4.0;
const UNIT: u64 = 64;
/// A train ends after this number of segments, so that a busy link yields many trains.
const LONGEST: u64 = 24;
/// Minimum segments after the first packet of a train. The rate of shorter trains is dominated by the jitter
/// of single packets.
const SHORTEST: u64 = 4;

/// Packets that follow each other closely, and the distribution of their rates.
#[derive(Clone, Debug)]
pub(super) struct Trains {
    began: i64,
    last: i64,
    /// Bytes after the first packet.
    bytes: u64,
    packets: u32,
    /// For each rate, the data of the trains with this rate, in units of 64 bytes.
    rates: [u32; BINS],
    total: u64,
}

impl Default for Trains {
    fn default() -> Self {
        Self { began: 0, last: 0, bytes: 0, packets: 0, rates: [0; BINS], total: 0 }
    }
}

impl Trains {
    /// Processes the arrival of `bytes`. A gap of more than `longest_gap` nanoseconds begins a new train.
    pub(super) fn arrived(&mut self, at: i64, bytes: u64, longest_gap: i64, segment: u64) {
        if self.packets > 0 && at - self.last > longest_gap {
            self.end(segment);
        }
        if self.packets == 0 {
            (self.began, self.bytes) = (at, 0);
        } else {
            self.bytes += bytes;
        }
        (self.last, self.packets) = (at, self.packets + 1);
        if self.bytes >= LONGEST * segment {
            self.end(segment);
            // The last packet begins the next train.
            (self.began, self.bytes, self.packets) = (at, 0, 1);
        }
    }

    /// Ends the current train. It is called at losses, because ACKs then say little about the spacing.
    pub(super) fn end(&mut self, segment: u64) {
        let lasted = self.last - self.began;
        if self.bytes >= SHORTEST * segment && self.packets > 2 && lasted > 0 {
            let kbit_per_s = self.bytes as f64 * 8e6 / lasted as f64;
            let bin = (kbit_per_s.max(1.0).log2() * PER_OCTAVE) as usize;
            let units = u32::try_from(self.bytes / UNIT).unwrap_or(u32::MAX);
            let rate = &mut self.rates[bin.min(BINS - 1)];
            self.total += u64::from(units.min(u32::MAX - *rate));
            *rate = rate.saturating_add(units);
        }
        (self.packets, self.bytes) = (0, 0);
    }

    /// Returns the rate in bit/s that trains with this share of the bytes do not exceed.
    pub(super) fn rate(&self, share: f64) -> Option<f64> {
        let below = (share * self.total as f64) as u64;
        let mut passed = 0;
        let bin = self.rates.iter().position(|bytes| {
            passed += u64::from(*bytes);
            passed > below
        })?;
        Some(1000.0 * 2f64.powf((bin as f64 + 0.5) / PER_OCTAVE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_show_the_rate_of_the_bottleneck() {
        let mut trains = Trains::default();
        // Ten segments at 12 Mbit/s (1 ms each), every 100 ms.
        for round in 0..20 {
            for packet in 0..10 {
                trains.arrived(round * 100_000_000 + packet * 1_000_000, 1500, 20_000_000, 1500);
            }
        }
        trains.end(1500);
        let rate = trains.rate(0.5).unwrap();
        assert!((rate / 12e6 - 1.0).abs() < 0.1, "{rate}");
        assert_eq!(Trains::default().rate(0.5), None);
    }
}
