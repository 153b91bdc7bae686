//! AMD PDUs (§9.2.1.4) with their Length Indicators (§9.2.2.8).

use std::borrow::Cow;

use super::{DecodeError, Format, IndicatorSize, control, sufi};
use crate::rlc::umts::pdu::{Amd, Pdu, Previous, Rest, Sn};

/// Header Extension Type (§9.2.2.7).
mod he {
    pub(super) const DATA: u16 = 0;
    pub(super) const INDICATOR: u16 = 1;
    pub(super) const SDU_END: u16 = 2;
}

/// Length Indicators of one size, and their predefined values (§9.2.2.8). Except for 0, a predefined value of
/// 15 bits is the one of 7 bits, preceded by eight 1 bits.
#[derive(Clone, Copy)]
struct Indicators {
    octets: usize,
    all_ones: u16,
}

/// Meaning of a Length Indicator.
enum Meaning {
    Previous(Previous),
    Offset(u16),
    Piggybacked,
    Padding,
    Reserved,
}

impl Indicators {
    const fn of(format: Format) -> Self {
        match format.indicator_size() {
            IndicatorSize::Bits7 => Self { octets: 1, all_ones: 0x7f },
            IndicatorSize::Bits15 => Self { octets: 2, all_ones: 0x7fff },
        }
    }

    const fn meaning(self, li: u16) -> Meaning {
        if li == 0 {
            return Meaning::Previous(Previous::EndedExactly);
        }
        match (self.octets, self.all_ones - li) {
            (_, 0) => Meaning::Padding,
            (_, 1) => Meaning::Piggybacked,
            // 111 1101, 111 1100 and, with 15 bits, 0x7ffa are defined for UMD PDUs only.
            (_, 2 | 3) | (2, 5) => Meaning::Reserved,
            (2, 4) => Meaning::Previous(Previous::EndedOneShort),
            _ => Meaning::Offset(li),
        }
    }

    const fn previous(self, previous: Previous) -> Option<u16> {
        match previous {
            Previous::NotIndicated => None,
            Previous::EndedExactly => Some(0),
            Previous::EndedOneShort => Some(self.all_ones - 4),
        }
    }

    const fn rest(self, rest: &Rest) -> Option<u16> {
        match rest {
            Rest::Nothing | Rest::SduEnd => None,
            Rest::Padding => Some(self.all_ones),
            Rest::Piggybacked(_) => Some(self.all_ones - 1),
        }
    }

    /// Number of indicators of a PDU.
    fn count(self, amd: &Amd<'_>) -> usize {
        let previous = amd.previous != Previous::NotIndicated;
        usize::from(previous) + amd.ends.len() + usize::from(self.rest(&amd.rest).is_some())
    }

    /// Writes the indicators of a PDU, each with its E bit.
    fn write(self, amd: &Amd<'_>, groups: &mut [u8]) {
        let values = self.previous(amd.previous).into_iter().chain(amd.ends.iter().copied());
        let mut groups = groups.chunks_exact_mut(self.octets).peekable();
        for li in values.chain(self.rest(&amd.rest)) {
            let Some(group) = groups.next() else { return };
            // E = 1 (§9.2.2.5): another Length Indicator follows.
            let value = li << 1 | u16::from(groups.peek().is_some());
            group.copy_from_slice(&value.to_be_bytes()[2 - self.octets..]);
        }
    }
}

/// Encodes an AMD PDU as [`encode`](super::encode) does.
pub(crate) fn encode_amd(amd: &Amd<'_>, format: Format) -> Vec<u8> {
    let mut octets = vec![0; encoded_size(amd, format)];
    write_amd(amd, format, &mut octets);
    octets
}

/// Size of an encoded AMD PDU.
pub(crate) fn encoded_size(amd: &Amd<'_>, format: Format) -> usize {
    if format.is_fixed() {
        return format.pdu_size;
    }
    let indicators = Indicators::of(format);
    let status = if let Rest::Piggybacked(status) = &amd.rest { status.octets() } else { 0 };
    2 + indicators.count(amd) * indicators.octets + amd.data.len() + status
}

/// Encodes an AMD PDU that consists of a header and data.
pub(crate) fn write_segment(sn: Sn, data: &[u8], octets: &mut [u8]) {
    octets[..2].copy_from_slice(&header(sn, false, he::DATA));
    octets[2..].copy_from_slice(data);
}

/// D/C (1 bit), Sequence Number (12), P (1), HE (2).
fn header(sn: Sn, poll: bool, he: u16) -> [u8; 2] {
    (0x8000 | sn.get() << 3 | u16::from(poll) << 2 | he).to_be_bytes()
}

/// Encodes an AMD PDU into memory of its [`encoded_size`]. Panics under the same conditions as
/// [`encode`](super::encode).
pub(crate) fn write_amd(amd: &Amd<'_>, format: Format, octets: &mut [u8]) {
    let indicators = Indicators::of(format);
    let count = indicators.count(amd);
    assert!(
        indicators.octets == 2 || amd.previous != Previous::EndedOneShort,
        "no 7-bit indicator means that an SDU ended one octet short"
    );
    assert!(octets.len() <= format.pdu_size, "a PDU of {} octets", octets.len());

    let he = match amd.rest {
        Rest::SduEnd => {
            assert!(count == 0 && format.he_special, "HE = 10 excludes length indicators");
            he::SDU_END
        }
        _ if count > 0 => he::INDICATOR,
        _ => he::DATA,
    };
    octets[..2].copy_from_slice(&header(amd.sn, amd.poll, he));
    let (groups, body) = octets[2..].split_at_mut(count * indicators.octets);
    if count > 0 {
        indicators.write(amd, groups);
    }

    assert!(
        amd.data.len() <= body.len(),
        "{} octets of data and {count} indicators do not fit",
        amd.data.len()
    );
    let (data, after) = body.split_at_mut(amd.data.len());
    data.copy_from_slice(&amd.data);
    let room = after.len();
    let status = match &amd.rest {
        Rest::Nothing if room == 1 && ignores_an_octet(indicators, &amd.ends, data.len() + 1) => 0,
        Rest::Nothing | Rest::SduEnd => {
            assert_eq!(room, 0, "{room} octets of the PDU are not filled");
            0
        }
        Rest::Padding => {
            assert_eq!(data.len(), last_end(&amd.ends), "padding within an SDU");
            0
        }
        Rest::Piggybacked(status) => {
            assert_eq!(data.len(), last_end(&amd.ends), "a piggybacked STATUS within an SDU");
            let status = sufi::encode(status);
            assert!(status.len() <= room, "a STATUS of {} octets in {room}", status.len());
            after[..status.len()].copy_from_slice(&status);
            status.len()
        }
    };
    after[status..].fill(0);
}

fn last_end(ends: &[u16]) -> usize {
    usize::from(ends.last().copied().unwrap_or(0))
}

/// Whether the last byte of the PDU is padding without an indicator. §9.2.2.8: this is the case if a 15-bit
/// Length Indicator marks the end of an SDU with one byte left. The next SDU begins in another PDU.
fn ignores_an_octet(indicators: Indicators, ends: &[u16], room: usize) -> bool {
    indicators.octets == 2 && ends.last().is_some_and(|end| usize::from(*end) + 1 == room)
}

#[inline]
pub(super) fn decode(octets: &[u8], format: Format) -> Result<Pdu<'_>, DecodeError> {
    let has_size =
        if format.is_fixed() { octets.len() == format.pdu_size } else { octets.len() <= format.pdu_size };
    if !has_size {
        return Err(DecodeError::AmdSize { octets: octets.len(), pdu_size: format.pdu_size });
    }
    let (header, body) = octets.split_first_chunk().ok_or(DecodeError::Truncated)?;
    // D/C (1 bit), Sequence Number (12), P (1), HE (2).
    let word = u16::from_be_bytes(*header);
    let mut amd = Amd { sn: Sn::new(word >> 3 & 0xfff), poll: word & 4 != 0, ..Amd::default() };
    match word & 3 {
        he::DATA => amd.data = Cow::Borrowed(body),
        he::INDICATOR => with_indicators(&mut amd, body, Indicators::of(format))?,
        he::SDU_END if format.he_special => {
            amd.data = Cow::Borrowed(body);
            amd.rest = Rest::SduEnd;
        }
        he::SDU_END => return Err(DecodeError::HeNotConfigured),
        _ => return Err(DecodeError::HeReserved),
    }
    Ok(Pdu::Amd(amd))
}

/// Decodes the part after HE = 01: groups of a Length Indicator and an E bit, then data.
fn with_indicators<'a>(
    amd: &mut Amd<'a>,
    mut body: &'a [u8],
    indicators: Indicators,
) -> Result<(), DecodeError> {
    let mut rest = None;
    let mut first = true;
    loop {
        let group = match (indicators.octets, body) {
            (1, [octet, tail @ ..]) => {
                body = tail;
                u16::from(*octet)
            }
            (2, [high, low, tail @ ..]) => {
                body = tail;
                u16::from_be_bytes([*high, *low])
            }
            _ => return Err(DecodeError::Truncated),
        };
        let (li, more) = (group >> 1, group & 1 == 1);
        match indicators.meaning(li) {
            Meaning::Previous(previous) if first => amd.previous = previous,
            Meaning::Previous(_) => return Err(DecodeError::LiNotFirst(li)),
            Meaning::Reserved => return Err(DecodeError::LiReserved(li)),
            Meaning::Padding | Meaning::Piggybacked if more => return Err(DecodeError::LiNotLast(li)),
            last @ (Meaning::Padding | Meaning::Piggybacked) => rest = Some(last),
            Meaning::Offset(end) => {
                let before = amd.ends.last().copied().unwrap_or(0);
                if end <= before {
                    return Err(DecodeError::LiNotAscending { li, before });
                }
                amd.ends.push(end);
            }
        }
        first = false;
        if !more {
            break;
        }
    }

    let ended = last_end(&amd.ends);
    let Some((mut data, after)) = body.split_at_checked(ended) else {
        return Err(DecodeError::LiBeyondPdu { li: ended as u16, room: body.len() });
    };
    match rest {
        Some(Meaning::Piggybacked) => {
            // §9.2.1.6: a piggybacked STATUS PDU begins with R2 and PDU Type instead of D/C and PDU Type.
            let first = after.first().ok_or(DecodeError::Truncated)?;
            if first & 0x80 != 0 {
                return Err(DecodeError::R2);
            }
            match first >> 4 & 7 {
                control::STATUS => amd.rest = Rest::Piggybacked(sufi::decode(after)?),
                other => return Err(DecodeError::PiggybackedType(other)),
            }
        }
        Some(_) => amd.rest = Rest::Padding,
        None if ignores_an_octet(indicators, &amd.ends, body.len()) => {}
        None => data = body,
    }
    amd.data = Cow::Borrowed(data);
    Ok(())
}
