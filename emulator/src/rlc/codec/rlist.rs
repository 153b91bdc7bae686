//! The numbers of a relative list (§9.2.2.11.6): code words of 4 bits, three of value and one that ends a number.

use crate::rlc::pdu::{Gap, Sn};

/// 0001 where a number would begin: the number that follows counts further errors, one after the other.
const BURST: u8 = 0b0001;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RlistError {
    #[error("its last number does not end")]
    Unfinished,
    #[error("it ends with an error burst indicator")]
    BurstWithoutLength,
    #[error("a distance or a burst length of 0")]
    Zero,
    #[error("it reaches more than 4095 sequence numbers ahead")]
    TooFar,
}

/// The errors that a relative list tells of, in their order; the first one is FSN itself.
#[derive(Clone, Debug)]
pub struct RlistGaps<'a> {
    codewords: &'a [u8],
    first: Option<Sn>,
    /// The last error so far.
    last: Sn,
    /// How far `last` is from FSN.
    span: u64,
}

pub fn expand_rlist(fsn: Sn, codewords: &[u8]) -> RlistGaps<'_> {
    RlistGaps { codewords, first: Some(fsn), last: fsn, span: 0 }
}

impl RlistGaps<'_> {
    /// The least significant code word comes first; the one with the end bit is the most significant.
    fn number(&mut self) -> Result<u16, RlistError> {
        let length = self.codewords.iter().position(|word| word & 1 == 1).ok_or(RlistError::Unfinished)? + 1;
        let (number, after) = self.codewords.split_at(length);
        self.codewords = after;
        let value = number.iter().rev().fold(0_u64, |value, word| value << 3 | u64::from(word >> 1));
        self.span += value;
        match value {
            0 => Err(RlistError::Zero),
            _ if self.span >= u64::from(Sn::MODULUS) => Err(RlistError::TooFar),
            value => Ok(value as u16),
        }
    }

    fn gap(&mut self) -> Result<Gap, RlistError> {
        let Some((&BURST, after)) = self.codewords.split_first() else {
            let distance = self.number()?;
            self.last = self.last.plus(distance);
            return Ok(Gap { first: self.last, count: 1 });
        };
        self.codewords = after;
        if matches!(after, [] | [BURST, ..]) {
            return Err(RlistError::BurstWithoutLength);
        }
        let count = self.number()?;
        let first = self.last.next();
        self.last = self.last.plus(count);
        Ok(Gap { first, count })
    }
}

impl Iterator for RlistGaps<'_> {
    type Item = Result<Gap, RlistError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(Ok(Gap { first, count: 1 }));
        }
        if self.codewords.is_empty() {
            return None;
        }
        let gap = self.gap();
        if gap.is_err() {
            self.codewords = &[];
        }
        Some(gap)
    }
}

/// Appends the code words that say: the next error is `distance` after the last one.
///
/// # Panics
///
/// If `distance` is 0.
pub fn push_distance(distance: u16, codewords: &mut Vec<u8>) {
    assert!(distance > 0, "an error is not its own successor");
    push_number(distance, codewords);
}

/// Appends the code words that say: and `further` more errors, one after the other.
///
/// # Panics
///
/// If `further` is 0.
pub fn push_burst(further: u16, codewords: &mut Vec<u8>) {
    assert!(further > 0, "a burst of no errors");
    codewords.push(BURST);
    push_number(further, codewords);
}

fn push_number(mut number: u16, codewords: &mut Vec<u8>) {
    while number >= 8 {
        codewords.push((number as u8 & 7) << 1);
        number >>= 3;
    }
    codewords.push((number as u8) << 1 | 1);
}
