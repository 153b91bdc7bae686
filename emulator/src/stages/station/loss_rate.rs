//! The loss-rate report of P3 (Lai, Leung, Li, "Design and analysis of TCP AIMD in wireless networks", §III
//! B).
//!
//! The paper's sender needs q_w, "the sum of p_w of all the links traversed". p_w of a radio link is the
//! running average of damaged packets over all packets. Each station adds the p_w of its own link to a value
//! that ACKs carry to the sender. It uses the link in the direction of the *data*, which is opposite to that
//! of the ACK. The value is in an experimental TCP option with an ExID (RFC 6994):
//!
//! ```text
//!     0        1        2        3        4        5
//! +--------+--------+--------+--------+--------+--------+
//! |Kind=254| Len=6  |   ExID = 0x7177 |   q_w * 2^16    |
//! +--------+--------+--------+--------+--------+--------+
//! ```
//!
//! The value saturates. Hosts that do not know the option skip it (RFC 9293 §3.1). If the option does not fit
//! (40 bytes of options, or the link's MTU), the segment is forwarded without a report: SACK blocks are more
//! valuable, and the next ACK reports the same. If the first station does not find room but a later one does,
//! the sum lacks the share of the first one. The paper prefers an estimate that is too low (§IV C).

use std::num::NonZeroU32;

use airwire::experiment::{KIND, LENGTH, LOSS_RATE as EXID, LossRate};
use airwire::rewrite::MAX_OPTIONS;

const END: u8 = 0;
const NOP: u8 = 1;
/// The kinds of TCP-MD5 (RFC 2385) and TCP-AO (RFC 5925). Signed segments must not be changed.
const MD5: u8 = 19;
const AO: u8 = 29;

/// Returns the rate in the options of a TCP header. `None`: the options contain no rate, or an earlier option
/// is malformed.
pub(super) fn find(options: &[u8]) -> Option<LossRate> {
    iterate(options).map_while(Result::ok).find_map(|option| option.rate())
}

/// Returns whether the segment has a signature that any change would invalidate.
pub(super) fn signed(options: &[u8]) -> bool {
    iterate(options).map_while(Result::ok).any(|option| matches!(option.octets[0], MD5 | AO))
}

/// The options of a TCP header, a multiple of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    octets: [u8; MAX_OPTIONS],
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddError {
    /// The option does not fit.
    Full,
    /// The existing options are malformed.
    Malformed,
}

/// Adds `own` to the rate in the options. Returns the new options and the new rate.
pub(super) fn add(options: &[u8], own: LossRate) -> Result<(Options, LossRate), AddError> {
    // The end of the last option, and the length of all options without padding.
    let (mut used, mut compact) = (0, 0);
    for option in iterate(options) {
        let option = option.map_err(|Malformed| AddError::Malformed)?;
        let TcpOption { at, octets } = option;
        if let Some(earlier) = option.rate() {
            let sum = earlier.saturating_add(own);
            let mut new = Options::default();
            new.push(options);
            new.octets[at + 4..at + LENGTH].copy_from_slice(&sum.0.to_be_bytes());
            return Ok((new, sum));
        }
        used = at + octets.len();
        compact += octets.len();
    }
    let mut new = Options::default();
    if used + LENGTH <= MAX_OPTIONS {
        new.push(&options[..used]);
    } else if compact + LENGTH <= MAX_OPTIONS {
        for option in iterate(options).map_while(Result::ok) {
            new.push(option.octets);
        }
    } else {
        return Err(AddError::Full);
    }
    let ([exid_high, exid_low], [high, low]) = (EXID.to_be_bytes(), own.0.to_be_bytes());
    new.push(&[KIND, LENGTH as u8, exid_high, exid_low, high, low]);
    while new.length < options.len() || !new.length.is_multiple_of(4) {
        new.push(&[NOP]);
    }
    Ok((new, own))
}

impl Default for Options {
    fn default() -> Self {
        Self { octets: [END; MAX_OPTIONS], length: 0 }
    }
}

impl Options {
    fn push(&mut self, octets: &[u8]) {
        self.octets[self.length..self.length + octets.len()].copy_from_slice(octets);
        self.length += octets.len();
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.octets[..self.length]
    }
}

/// An option other than padding.
#[derive(Clone, Copy)]
struct TcpOption<'a> {
    at: usize,
    /// The option with its kind and length.
    octets: &'a [u8],
}

impl TcpOption<'_> {
    fn rate(&self) -> Option<LossRate> {
        let exid = EXID.to_be_bytes();
        match *self.octets {
            [KIND, _, a, b, high, low] if [a, b] == exid => Some(LossRate(u16::from_be_bytes([high, low]))),
            _ => None,
        }
    }
}

/// The length of an option is impossible, so the rest cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Malformed;

fn iterate(options: &[u8]) -> impl Iterator<Item = Result<TcpOption<'_>, Malformed>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while options.get(at) == Some(&NOP) {
            at += 1;
        }
        let begin = at;
        match options.get(begin..)? {
            [] | [END, ..] => None,
            [_, length, ..] if *length >= 2 && begin + usize::from(*length) <= options.len() => {
                at += usize::from(*length);
                Some(Ok(TcpOption { at: begin, octets: &options[begin..at] }))
            }
            _ => {
                at = options.len();
                Some(Err(Malformed))
            }
        }
    })
}

/// The p_w of a radio link: damaged packets over all packets. It is exact for the first `window` packets.
/// After them it is an exponential average, in which each new packet has the weight 1 / `window`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    ratio: f64,
    pub(super) packets: u64,
    pub(super) damaged: u64,
}

impl Meter {
    pub(super) const fn new() -> Self {
        Self { ratio: 0.0, packets: 0, damaged: 0 }
    }

    pub(super) fn count(&mut self, damaged: bool, window: NonZeroU32) {
        self.packets += 1;
        self.damaged += u64::from(damaged);
        let weight = 1.0 / self.packets.min(u64::from(window.get())) as f64;
        self.ratio += (f64::from(u8::from(damaged)) - self.ratio) * weight;
    }

    /// Returns the rate, which is 0 before the first packet (§IV C).
    pub(super) fn rate(&self) -> LossRate {
        LossRate::from_ratio(self.ratio)
    }
}

#[cfg(test)]
mod tests {
    use airtcp_testkit::sample::cases;
    use proptest::prelude::*;

    use super::*;

    const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];

    fn sack(blocks: u8) -> Vec<u8> {
        let mut option = vec![1, 1, 5, 2 + 8 * blocks];
        option.resize(usize::from(4 + 8 * blocks), 0x33);
        option
    }

    fn with(rate: u16) -> [u8; 6] {
        let [high, low] = rate.to_be_bytes();
        [254, 6, 0x71, 0x77, high, low]
    }

    fn added(options: &[u8], rate: u16) -> Result<(Vec<u8>, u16), AddError> {
        add(options, LossRate(rate)).map(|(options, sum)| (options.as_slice().to_vec(), sum.0))
    }

    #[test]
    fn option_is_appended_to_existing_options() {
        let expected = [&TIMESTAMPS[..], &with(655), &[1, 1]].concat();
        assert_eq!(added(&TIMESTAMPS, 655), Ok((expected.clone(), 655)));
        assert_eq!(find(&expected), Some(LossRate(655)));
        assert_eq!(find(&TIMESTAMPS), None);
        assert_eq!(added(&[], 0), Ok(([&with(0)[..], &[1, 1]].concat(), 0)), "a rate of 0 is reported");
    }

    #[test]
    fn second_link_adds_rate_and_sum_saturates() {
        let first = added(&TIMESTAMPS, 40_000).unwrap().0;
        let (second, sum) = added(&first, 1_000).unwrap();
        assert_eq!((second.len(), sum, find(&second)), (first.len(), 41_000, Some(LossRate(41_000))));
        assert_eq!(added(&second, 40_000).unwrap().1, 65_535);
        // The option may be at an odd offset.
        let odd = [&[1][..], &with(7), &[0]].concat();
        assert_eq!(added(&odd, 3), Ok(([&[1][..], &with(10), &[0]].concat(), 10)));
    }

    #[test]
    fn full_option_space_is_left_unchanged() {
        let full = [&TIMESTAMPS[..], &sack(3)].concat();
        assert_eq!(full.len(), 40);
        assert_eq!(added(&full, 1), Err(AddError::Full));
        let two = [&TIMESTAMPS[..], &sack(2)].concat();
        assert_eq!(added(&two, 1).unwrap().0.len(), 40);
    }

    #[test]
    fn option_replaces_padding_if_space_is_short() {
        // Four SACK blocks without timestamps: 36 bytes, of which two are padding.
        let (options, _) = added(&sack(4), 9).unwrap();
        assert_eq!(options, [&sack(4)[2..], &with(9)].concat());
        // Padding at the end, of either kind, is used first.
        let padded = [&TIMESTAMPS[..], &[1; 8]].concat();
        assert_eq!(added(&padded, 9).unwrap().0, [&TIMESTAMPS[..], &with(9), &[1, 1]].concat());
        let ended = [&[2, 4, 5, 180][..], &[0; 36]].concat();
        assert_eq!(added(&ended, 9).unwrap().0, [&[2, 4, 5, 180][..], &with(9), &[1; 30]].concat());
    }

    #[test]
    fn malformed_options_are_left_unchanged() {
        for malformed in [&[8, 1, 0, 0][..], &[8, 0, 0, 0], &[8, 10, 0, 0], &[1, 1, 1, 8]] {
            assert_eq!(added(malformed, 9), Err(AddError::Malformed), "{malformed:?}");
            assert_eq!(find(malformed), None);
        }
    }

    #[test]
    fn options_of_other_experiments_are_ignored() {
        for other in [[254, 6, 0x12, 0x34, 0, 9], [253, 6, 0x71, 0x77, 0, 9]] {
            assert_eq!(find(&other), None);
        }
        assert_eq!(find(&[254, 8, 0x71, 0x77, 0, 9, 9, 9]), None);
    }

    #[test]
    fn md5_signed_segments_are_detected() {
        let md5 = [&[1, 1, 19, 18][..], &[7; 16]].concat();
        assert!(signed(&md5) && !signed(&TIMESTAMPS));
    }

    #[test]
    fn loss_rate_is_running_average() {
        let window = const { NonZeroU32::new(100).unwrap() };
        let mut meter = Meter::new();
        assert_eq!(meter.rate(), LossRate(0));
        for packet in 0..100 {
            meter.count(packet % 10 == 0, window);
        }
        assert_eq!(meter.rate(), LossRate(6_554), "10 of 100, exactly");
        // The channel becomes good, and the old average decays with (1 - 1/100)^n.
        for _ in 0..100 {
            meter.count(false, window);
        }
        assert_eq!(meter.rate(), LossRate::from_ratio(0.1 * 0.99_f64.powi(100)));
    }

    #[test]
    fn total_loss_saturates_rate() {
        assert_eq!(LossRate::from_ratio(1.0), LossRate(65_535));
        assert!((LossRate::from_ratio(0.02).ratio() - 0.02).abs() < 1e-5);
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// A header can contain any bytes.
        #[test]
        fn adding_rate_keeps_other_options(
            words in prop::collection::vec(prop::array::uniform4(0_u8..12), 0..=10),
            rate: u16,
        ) {
            let options = words.concat();
            let before: Vec<Vec<u8>> =
                iterate(&options).map_while(Result::ok).map(|item| item.octets.to_vec()).collect();
            if let Ok((new, sum)) = add(&options, LossRate(rate)) {
                let new = new.as_slice();
                prop_assert!(new.len() <= 40 && new.len().is_multiple_of(4) && new.len() >= options.len());
                prop_assert_eq!(find(new), Some(sum));
                let after: Vec<Vec<u8>> = iterate(new).map(|item| item.unwrap().octets.to_vec()).collect();
                prop_assert_eq!(&after[..before.len()], &before[..]);
                prop_assert_eq!(after.len(), before.len() + 1);
            }
        }
    }
}
