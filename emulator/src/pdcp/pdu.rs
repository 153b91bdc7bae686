//! Formats of PDCP PDUs: data PDUs and status reports.

use std::sync::Arc;

use super::Count;

/// Format of the PDUs of a bearer, which determines the number of bits of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// NR, 12 bits (TS 38.323 Figure 6.2.2.2-1).
    Nr12,
    /// NR, 18 bits (TS 38.323 Figure 6.2.2.3-1).
    Nr18,
    /// LTE, 12 bits (TS 36.323 §6.2.3).
    Lte12,
    /// LTE, 15 bits (TS 36.323 §6.2.9).
    Lte15,
    /// LTE, 18 bits (TS 36.323 §6.2.11).
    Lte18,
}

/// Maximum size of an NR status report in octets (TS 38.323 §5.4.1).
const MAX_NR_REPORT: usize = 9000;
/// Maximum size of an LTE status report in octets (TS 36.323 §5.3.1).
const MAX_LTE_REPORT: usize = 8188;

/// The D/C bit of a data PDU.
const DATA: u8 = 0x80;

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Nr12, Self::Nr18, Self::Lte12, Self::Lte15, Self::Lte18];

    /// Number of bits of a sequence number.
    pub const fn sn_bits(self) -> u32 {
        match self {
            Self::Nr12 | Self::Lte12 => 12,
            Self::Lte15 => 15,
            Self::Nr18 | Self::Lte18 => 18,
        }
    }

    /// Size of the header of a data PDU in octets.
    pub const fn header(self) -> usize {
        if self.sn_bits() == 18 { 3 } else { 2 }
    }

    /// Window_Size of NR and Reordering_Window of LTE: half of the sequence number space.
    pub const fn window(self) -> Count {
        1 << (self.sn_bits() - 1)
    }

    /// The sequence number of an SDU.
    pub const fn sn(self, count: Count) -> u32 {
        (count & (2 * self.window() - 1)) as u32
    }

    /// The SDU of a data PDU that [`decode`] has accepted.
    pub fn sdu(self, pdu: &[u8]) -> &[u8] {
        &pdu[self.header()..]
    }

    /// Size of a status report without its bitmap.
    const fn report_header(self) -> usize {
        match self {
            Self::Nr12 | Self::Nr18 => 5,
            Self::Lte12 => 2,
            Self::Lte15 | Self::Lte18 => 3,
        }
    }

    /// Maximum number of octets in the bitmap of a status report.
    const fn max_bitmap(self) -> usize {
        match self {
            Self::Nr12 | Self::Nr18 => MAX_NR_REPORT - self.report_header(),
            Self::Lte12 | Self::Lte15 | Self::Lte18 => MAX_LTE_REPORT - self.report_header(),
        }
    }

    const fn is_nr(self) -> bool {
        matches!(self, Self::Nr12 | Self::Nr18)
    }
}

/// A PDU whose header has been decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu {
    /// A data PDU. Its SDU is [`Format::sdu`].
    Data {
        /// The sequence number.
        sn: u32,
    },
    /// A status report.
    Status(StatusReport),
}

/// Reason why a receiver discards a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The PDU ends before its header does.
    #[error("the PDU is shorter than its header")]
    Short,
    /// The PDU has a header and no SDU.
    #[error("the PDU has no SDU")]
    Empty,
    /// A control PDU of another type, such as feedback of header compression.
    #[error("control PDU of type {0}")]
    Type(u8),
}

/// A PDCP status report: the first SDU that the receiver misses, and which of the SDUs after it have arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// NR: FMC, the COUNT of the first missing SDU. LTE: FMS, its sequence number.
    pub first_missing: u32,
    /// One bit for each SDU after the first missing one, beginning with the most significant bit of the first
    /// octet. A bit of 1 means that the SDU has arrived.
    pub bitmap: Vec<u8>,
}

/// Encodes a data PDU.
pub fn encode_data(format: Format, count: Count, sdu: &[u8]) -> Arc<[u8]> {
    let sn = format.sn(count).to_be_bytes();
    // A conversion of a vector would copy all octets to a second allocation.
    let mut pdu: Arc<[u8]> = std::iter::repeat_n(0, format.header() + sdu.len()).collect();
    let octets = Arc::get_mut(&mut pdu).expect("a new PDU has one owner");
    let (header, data) = octets.split_at_mut(format.header());
    header.copy_from_slice(&sn[4 - header.len()..]);
    header[0] |= DATA;
    data.copy_from_slice(sdu);
    pdu
}

/// Decodes the header of a PDU. Reserved bits are ignored.
pub fn decode(format: Format, pdu: &[u8]) -> Result<Pdu, DecodeError> {
    let first = *pdu.first().ok_or(DecodeError::Short)?;
    if first & DATA == 0 {
        return StatusReport::decode(format, pdu).map(Pdu::Status);
    }
    let header = pdu.get(..format.header()).ok_or(DecodeError::Short)?;
    if pdu.len() == header.len() {
        return Err(DecodeError::Empty);
    }
    Ok(Pdu::Data { sn: format.sn(big_endian(header).into()) })
}

fn big_endian(octets: &[u8]) -> u32 {
    octets.iter().fold(0, |value, octet| value << 8 | u32::from(*octet))
}

impl StatusReport {
    /// Creates the report of a receiver that misses `first_missing`. `arrived` says for each later SDU, in
    /// order, whether it has arrived. The report ends at its maximum size.
    pub fn new(format: Format, first_missing: Count, arrived: impl Iterator<Item = bool>) -> Self {
        let first_missing = if format.is_nr() { first_missing as u32 } else { format.sn(first_missing) };
        let mut bitmap = Vec::new();
        for (i, arrived) in arrived.take(8 * format.max_bitmap()).enumerate() {
            if i % 8 == 0 {
                bitmap.push(0);
            }
            bitmap[i / 8] |= u8::from(arrived) << (7 - i % 8);
        }
        Self { first_missing, bitmap }
    }

    /// COUNT of the first missing SDU, if the sender's first unconfirmed SDU is `unconfirmed`. The two differ
    /// by less than half of the number space.
    pub fn first_missing_count(&self, format: Format, unconfirmed: Count) -> Count {
        let bits = if format.is_nr() { 32 } else { format.sn_bits() };
        let half = 1_u64 << (bits - 1);
        let ahead =
            u64::from(self.first_missing).wrapping_sub(unconfirmed).wrapping_add(half) & (2 * half - 1);
        (unconfirmed + ahead).saturating_sub(half)
    }

    /// The SDUs that have arrived, as distances from the first missing one.
    pub fn arrived(&self) -> impl Iterator<Item = Count> {
        let bits = |octet: u8| (0..8).map(move |bit| octet << bit & 0x80 != 0);
        (1..).zip(self.bitmap.iter().copied().flat_map(bits)).filter_map(|(n, arrived)| arrived.then_some(n))
    }

    /// Encodes the report.
    pub fn encode(&self, format: Format) -> Vec<u8> {
        let first_missing = self.first_missing.to_be_bytes();
        let mut pdu = Vec::with_capacity(format.report_header() + self.bitmap.len());
        if format.is_nr() {
            // The FMC begins with the second octet.
            pdu.push(0);
        }
        pdu.extend_from_slice(&first_missing[4 + pdu.len() - format.report_header()..]);
        pdu.extend_from_slice(&self.bitmap);
        pdu
    }

    fn decode(format: Format, pdu: &[u8]) -> Result<Self, DecodeError> {
        match pdu[0] >> 4 {
            0 => {}
            kind => return Err(DecodeError::Type(kind)),
        }
        let (header, bitmap) = pdu.split_at_checked(format.report_header()).ok_or(DecodeError::Short)?;
        let first_missing =
            if format.is_nr() { big_endian(&header[1..]) } else { format.sn(big_endian(header).into()) };
        Ok(Self { first_missing, bitmap: bitmap.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(octets: &[u8]) -> String {
        octets.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    #[test]
    fn data_headers_match_vectors() {
        for (format, count, header) in [
            (Format::Nr12, 5, "8005"),
            (Format::Nr18, 200_000, "830d40"),
            (Format::Lte12, 5, "8005"),
            (Format::Lte15, 300, "812c"),
            (Format::Lte18, 70_000, "811170"),
        ] {
            // Higher bits of the COUNT are not transmitted.
            for hfn in [0, 1, 3] {
                let pdu = encode_data(format, count + hfn * 2 * format.window(), b"ip");
                assert_eq!(hex(&pdu), format!("{header}6970"), "{format:?}");
                assert_eq!(decode(format, &pdu), Ok(Pdu::Data { sn: count as u32 }));
                assert_eq!(format.sdu(&pdu), b"ip");
            }
        }
    }

    #[test]
    fn status_reports_match_vectors() {
        let arrived = |report: &StatusReport| report.arrived().collect::<Vec<_>>();
        for (format, first_missing, bits, octets) in [
            (Format::Nr18, 200_001, &[false, true, true][..], "0000030d4160"),
            (Format::Nr12, 7, &[], "0000000007"),
            (Format::Lte12, 6, &[false, true], "000640"),
            (Format::Lte18, 70_001, &[false, true], "01117140"),
            (Format::Lte15, 300, &[true], "00012c80"),
        ] {
            let report = StatusReport::new(format, first_missing, bits.iter().copied());
            let pdu = report.encode(format);
            assert_eq!(hex(&pdu), octets, "{format:?}");
            assert_eq!(decode(format, &pdu), Ok(Pdu::Status(report.clone())));
            let expected: Vec<_> = (1..).zip(bits).filter(|(_, bit)| **bit).map(|(n, _)| n).collect();
            assert_eq!(arrived(&report), expected);
        }
    }

    #[test]
    fn report_is_limited_to_maximum_size() {
        for (format, octets) in [(Format::Nr18, 9000), (Format::Lte18, 8188)] {
            let report = StatusReport::new(format, 1, std::iter::repeat(true));
            assert_eq!(report.encode(format).len(), octets);
        }
    }

    #[test]
    fn malformed_pdus_are_refused() {
        for format in Format::ALL {
            assert_eq!(decode(format, &[]), Err(DecodeError::Short));
            assert_eq!(decode(format, &[0x80]), Err(DecodeError::Short));
            assert_eq!(decode(format, &[0x80, 0, 0][..format.header()]), Err(DecodeError::Empty));
            // Interspersed ROHC feedback.
            assert_eq!(decode(format, &[0x10, 1, 2, 3, 4]), Err(DecodeError::Type(1)));
            assert_eq!(decode(format, &[0x00]), Err(DecodeError::Short));
        }
        // Reserved bits do not matter.
        assert_eq!(decode(Format::Nr18, &[0xff, 0xff, 0xff, 1]), Ok(Pdu::Data { sn: 0x3_ffff }));
    }

    #[test]
    fn first_missing_is_resolved_around_first_unconfirmed() {
        for (sn, unconfirmed, count) in
            [(6, 5, 6), (4_095, 4_096, 4_095), (3, 4_090, 4_099), (5, 5 + 4_096, 5 + 4_096), (4_000, 10, 0)]
        {
            let report = StatusReport { first_missing: sn, bitmap: Vec::new() };
            assert_eq!(report.first_missing_count(Format::Lte12, unconfirmed), count, "{sn} {unconfirmed}");
        }
        let report = StatusReport { first_missing: u32::MAX, bitmap: Vec::new() };
        assert_eq!(report.first_missing_count(Format::Nr18, 1 << 32), (1 << 32) - 1);
    }
}
