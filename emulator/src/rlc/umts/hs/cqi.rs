//! Channel quality indicators (TS 25.214 §6A.2): the transport block that a mobile can receive, and the
//! probability of its loss.

use std::f64::consts::LN_10;

use crate::maths;

/// CQI, 0 to 30. 0 means out of range: nothing can be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cqi(u8);

/// Bits of the transport blocks of CQI 1 to 30 (Table 7D. Tables 7A to 7C are identical up to the largest
/// block of their categories).
const SIZES: [u16; 30] = [
    137, 173, 233, 317, 377, 461, 650, 792, 931, 1262, 1483, 1742, 2279, 2583, 3319, 3565, 4189, 4664, 5287,
    5887, 6554, 7168, 9719, 11418, 14411, 17237, 21754, 23370, 24222, 25558,
];

/// Capability of a mobile of an HS-DSCH category (TS 25.306 §5.1, and the tables of TS 25.214 §6A.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Category {
    /// The CQI with the largest block. A higher CQI does not allow a larger block.
    pub largest: Cqi,
    /// Minimum distance of two TTIs in which the mobile receives a block, in TTIs.
    pub spacing: u64,
}

impl Category {
    /// Returns the category with this number. `None` if it is not supported.
    pub const fn of(number: u8) -> Option<Self> {
        let (largest, spacing) = match number {
            1 | 2 => (22, 3),
            3 | 4 => (22, 2),
            5 | 6 => (22, 1),
            7 | 8 => (25, 1),
            9 => (26, 1),
            10 => (30, 1),
            11 => (15, 2),
            12 => (15, 1),
            _ => return None,
        };
        Some(Self { largest: Cqi(largest), spacing })
    }
}

impl Cqi {
    /// Value of the CQI, 0 to 30.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// CQI that a mobile reports at this signal-to-noise ratio, in dB. At most about a tenth of the blocks
    /// with this CQI are lost. The relation for an AWGN channel is from Brouwer et al., "Usage of link-level
    /// performance indicators for HSDPA network-level simulations in E-UMTS", ISSSTA 2004.
    pub fn of(snr: f64) -> Self {
        if snr <= -16.0 {
            return Self(0);
        }
        Self((snr / 1.02 + 16.62).floor().min(30.0) as u8)
    }

    /// CQI of the smallest block with at least `bits` bits, up to `most`. If there is none, returns `most`.
    pub fn for_bits(bits: usize, most: Self) -> Self {
        (1..most.0).map(Self).find(|cqi| usize::from(cqi.block()) >= bits).unwrap_or(most)
    }

    /// Bits of the transport block.
    pub fn block(self) -> u16 {
        self.0.checked_sub(1).map_or(0, |index| SIZES[usize::from(index)])
    }

    /// Probability that the block is lost at a signal-to-noise ratio of `snr` dB. Brouwer et al. give the
    /// inverse function:
    ///
    /// SNR = (√3 − log CQI) / 2 · log(BLER^−0.7 − 1) + 1.03 CQI − 17.3
    pub fn bler(self, snr: f64) -> f64 {
        if self.0 == 0 {
            return 1.0;
        }
        let cqi = f64::from(self.0);
        let steepness = (3.0_f64.sqrt() - maths::ln(cqi) / LN_10) / 2.0;
        let decades = (snr - 1.03 * cqi + 17.3) / steepness;
        if decades > 300.0 {
            return 0.0;
        }
        maths::pow(1.0 + maths::exp(decades * LN_10), -1.0 / 0.7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_cqi_has_about_10_percent_bler() {
        for cqi in 1..=30 {
            // The lowest signal-to-noise ratio at which this CQI is reported.
            let least = (f64::from(cqi) - 16.62) * 1.02 + 1e-9;
            assert_eq!(Cqi::of(least).get(), cqi.max(1));
            let bler = Cqi(cqi).bler(least);
            assert!((0.04..0.25).contains(&bler), "CQI {cqi}: {bler}");
        }
        assert_eq!(
            [-40.0, -16.0, -15.9, 13.64, 14.0, 60.0].map(|snr| Cqi::of(snr).get()),
            [0, 0, 1, 29, 30, 30]
        );
    }

    #[test]
    fn bler_matches_published_snr_relation() {
        for cqi in [1_u8, 7, 15, 22, 30] {
            for bler in [0.9_f64, 0.5, 0.1, 0.01] {
                let n = f64::from(cqi);
                let snr =
                    (3.0_f64.sqrt() - n.log10()) / 2.0 * (bler.powf(-0.7) - 1.0).log10() + 1.03 * n - 17.3;
                assert!((Cqi(cqi).bler(snr) / bler - 1.0).abs() < 1e-9, "CQI {cqi}, {bler}");
            }
            assert_eq!(Cqi(cqi).bler(200.0), 0.0);
            assert!((Cqi(cqi).bler(-200.0) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn smallest_sufficient_block_size_is_chosen() {
        assert_eq!(
            [1, 137, 138, 7168, 7169].map(|bits| Cqi::for_bits(bits, Cqi(30)).get()),
            [1, 1, 2, 22, 23]
        );
        assert_eq!(Cqi::for_bits(7168, Cqi(22)).get(), 22);
        assert_eq!(Cqi::for_bits(7169, Cqi(22)).get(), 22, "no larger block is allowed");
        for category in 1..=12 {
            let largest = Category::of(category).unwrap().largest;
            let block = [7168, 14411, 17237, 25558, 3319];
            assert!(block.contains(&largest.block()), "{category}");
        }
        assert_eq!(Category::of(13), None);
    }
}
