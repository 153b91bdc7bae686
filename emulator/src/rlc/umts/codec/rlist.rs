//! Code words of a Relative List super-field (§9.2.2.11.6). A code word has three bits of a number, and one
//! bit that is set in the number's last code word.

use crate::rlc::umts::pdu::{Gap, Sn};

/// "Error burst indicator": a code word 0001 in place of a number. The next number is the count of
/// "subsequent" erroneous AMD PDUs, without the PDU indicated before.
const BURST: u8 = 0b0001;

/// Reason why a relative list is invalid, and its STATUS PDU is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RlistError {
    /// §9.2.2.11.6: the last code word does not end with a 1.
    #[error("its last number does not end")]
    Unfinished,
    /// §9.2.2.11.6: no number follows an error burst indicator.
    #[error("it ends with an error burst indicator")]
    BurstWithoutLength,
    /// Choice: 0 is not a valid distance or burst length. It would name the same PDU again, or none.
    #[error("a distance or a burst length of 0")]
    Zero,
    /// Choice: the list must not cover all sequence numbers. It would reach FSN again.
    #[error("it reaches more than 4095 sequence numbers ahead")]
    TooFar,
}

/// Iterator over the erroneous PDUs of a relative list, in list order. The first one is FSN. The iteration
/// ends after an error.
#[derive(Clone, Debug)]
pub(crate) struct RlistGaps<'a> {
    codewords: &'a [u8],
    first: Option<Sn>,
    /// The last erroneous PDU so far.
    last: Sn,
    /// Distance of `last` from FSN.
    span: u64,
}

/// Returns the PDUs that a relative list reports as missing.
pub(crate) fn expand_rlist(fsn: Sn, codewords: &[u8]) -> RlistGaps<'_> {
    RlistGaps { codewords, first: Some(fsn), last: fsn, span: 0 }
}

impl RlistGaps<'_> {
    /// Reads a number. Its first code word holds the least significant bits, its last one the most
    /// significant bits.
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
    assert!(distance > 0, "a distance of 0");
    push_number(distance, codewords);
}

/// Appends an error burst: the `further` PDUs after the last erroneous one are erroneous, too.
///
/// # Panics
///
/// If `further` is 0.
pub(crate) fn push_burst(further: u16, codewords: &mut Vec<u8>) {
    assert!(further > 0, "an empty error burst");
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
