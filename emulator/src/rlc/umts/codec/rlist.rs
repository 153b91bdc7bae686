//! The code words of a Relative List super-field (§9.2.2.11.6): three bits of a number, and one that is set in the last
//! code word of the number.

use crate::rlc::umts::pdu::{Gap, Sn};

/// "Error burst indicator", 0001 where a number would begin: the number that follows counts the subsequent erroneous
/// AMD PDUs, without the one already indicated.
const BURST: u8 = 0b0001;

/// Why a Relative List is invalid, and its STATUS PDU discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RlistError {
    /// §9.2.2.11.6: the last code word does not end with a 1.
    #[error("its last number does not end")]
    Unfinished,
    /// §9.2.2.11.6: no number follows an error burst indicator.
    #[error("it ends with an error burst indicator")]
    BurstWithoutLength,
    /// Choice: it would name the same PDU again, or none.
    #[error("a distance or a burst length of 0")]
    Zero,
    /// Choice: it would come round to FSN again.
    #[error("it reaches more than 4095 sequence numbers ahead")]
    TooFar,
}

/// The erroneous PDUs of a relative list, in its order; the first one is FSN. After an error there is nothing more.
#[derive(Clone, Debug)]
pub(crate) struct RlistGaps<'a> {
    codewords: &'a [u8],
    first: Option<Sn>,
    /// The last error so far.
    last: Sn,
    /// How far `last` is from FSN.
    span: u64,
}

/// What a relative list reports missing.
pub(crate) fn expand_rlist(fsn: Sn, codewords: &[u8]) -> RlistGaps<'_> {
    RlistGaps { codewords, first: Some(fsn), last: fsn, span: 0 }
}

impl RlistGaps<'_> {
    /// The first code word of a number holds its least significant bits; the one that ends it is the most significant.
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

/// Appends the distance from one erroneous PDU to the next.
///
/// # Panics
///
/// If `distance` is 0.
pub(crate) fn push_distance(distance: u16, codewords: &mut Vec<u8>) {
    assert!(distance > 0, "an error is not its own successor");
    push_number(distance, codewords);
}

/// Appends an error burst: `further` erroneous PDUs follow the last one without a gap.
///
/// # Panics
///
/// If `further` is 0.
pub(crate) fn push_burst(further: u16, codewords: &mut Vec<u8>) {
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
