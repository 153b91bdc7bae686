//! Unacknowledged mode (TS 36.322 §5.1.2.1, TS 38.322 §5.2.2.1): formats, sequence numbers and segments. A
//! capture contains no PDU of the receiver, so only the sender is checked.

use super::Generation;
use super::capture::Frame;
use super::codec::Bits;
use crate::findings::{Counts, Findings, Invariant};

/// The header fields of a PDU.
struct Umd {
    /// `None`: NR transmits a whole SDU without a sequence number.
    sn: Option<u32>,
    /// Offset of the data in its SDU. LTE: 1 if the offset is above 0, because the header does not contain
    /// it.
    start: u32,
    /// Transmitted octets of an SDU that the next PDU continues. 0: no SDU continues.
    unfinished: u32,
}

/// The sender of one direction.
#[derive(Default)]
struct Sender {
    ue: u16,
    next: u64,
    /// Octets of the unfinished SDU.
    unfinished: u32,
}

/// Checks the PDUs of a bearer, in the order of transmission.
pub(super) fn check(generation: Generation, frames: &[&Frame]) -> Findings {
    let mut findings = Findings::new(&Invariant::UM);
    let mut senders = [Sender::default(), Sender::default()];
    let mut counts = [Counts::default(), Counts::default()];
    for frame in frames {
        let direction = frame.direction as usize;
        let sender = &mut senders[direction];
        let counts = &mut counts[direction];
        if sender.ue != frame.ue {
            counts.resets += u64::from(sender.ue != 0);
            *sender = Sender { ue: frame.ue, ..Sender::default() };
        }
        counts.pdus += 1;
        counts.lost += u64::from(frame.lost);
        counts.new += 1;
        sender.check(generation, frame, &mut findings);
        counts.laps = counts.laps.max(sender.next.saturating_sub(1) / generation.modulus());
    }
    [findings.down, findings.up] = counts;
    findings
}

impl Sender {
    fn check(&mut self, generation: Generation, frame: &Frame, findings: &mut Findings) {
        let umd = decode(generation, &frame.pdu);
        let error = umd.as_ref().err().cloned().unwrap_or_default();
        findings.expect(Invariant::Format, frame.number, umd.is_ok(), || error);
        let Ok(Umd { sn, start, unfinished }) = umd else { return };
        let next = (self.next % generation.modulus()) as u32;
        findings.expect(Invariant::Format, frame.number, sn.is_none_or(|sn| sn == next), || {
            format!("SN {} instead of {next}", sn.unwrap_or_default())
        });
        findings.expect(Invariant::Segmentation, frame.number, start == self.unfinished, || {
            format!("an SDU continues at octet {start} instead of {}", self.unfinished)
        });
        findings.expect(Invariant::Retransmission, frame.number, frame.transmission == 1, || {
            "a PDU is transmitted again".to_owned()
        });
        // In LTE, each PDU has its own number. In NR, the segments of an SDU share a number.
        let ends_number = matches!(generation, Generation::Lte(_)) || sn.is_some() && unfinished == 0;
        self.next += u64::from(ends_number);
        self.unfinished = unfinished;
    }
}

fn decode(generation: Generation, pdu: &[u8]) -> Result<Umd, String> {
    let mut bits = Bits::new(pdu);
    match generation {
        Generation::Nr(sn) => nr(&mut bits, sn.into()),
        Generation::Lte(sn) => lte(&mut bits, sn.into()),
    }
}

fn nr(bits: &mut Bits<'_>, sn_bits: usize) -> Result<Umd, String> {
    let (has_start, has_end) = match bits.take(2)? {
        0 => (true, true),
        1 => (true, false),
        2 => (false, true),
        _ => (false, false),
    };
    let sn = if has_start && has_end {
        bits.zero(6)?;
        None
    } else {
        bits.zero(if sn_bits == 12 { 2 } else { 0 })?;
        Some(bits.take(sn_bits)?)
    };
    let start = if has_start { 0 } else { bits.take(16)? };
    if !has_start && start == 0 {
        return Err("SO 0 in a segment that is not the first".to_owned());
    }
    let octets = data(bits)?;
    Ok(Umd { sn, start, unfinished: if has_end { 0 } else { start + octets } })
}

fn lte(bits: &mut Bits<'_>, sn_bits: usize) -> Result<Umd, String> {
    bits.zero(if sn_bits == 10 { 3 } else { 0 })?;
    let (continues, is_continued) = (bits.take(1)?, bits.take(1)?);
    let mut extended = bits.take(1)? == 1;
    let sn = bits.take(sn_bits)?;
    let mut end = 0;
    while extended {
        extended = bits.take(1)? == 1;
        let length = bits.take(11)?;
        if length == 0 {
            return Err("a Length Indicator is 0".to_owned());
        }
        end += length;
    }
    let octets = data(bits)?;
    if octets <= end {
        return Err(format!("Length Indicators of {end} octets in {octets} octets of data"));
    }
    Ok(Umd { sn: Some(sn), start: continues, unfinished: is_continued })
}

/// Number of octets after the header.
fn data(bits: &mut Bits<'_>) -> Result<u32, String> {
    match bits.rest_octets()?.len() {
        0 => Err("no data".to_owned()),
        octets => Ok(octets as u32),
    }
}
