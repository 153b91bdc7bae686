use airtcp_testkit::sample::cases;
use proptest::prelude::*;
use smallvec::smallvec;

use super::*;
use crate::rlc::am::testing::hex;

/// The data of all vectors.
const D: &[u8] = &[0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19];

const SHORT: AmFormat = AmFormat { sn: AmSnLength::Bits10, li: LiLength::Bits11 };
const LONG: AmFormat = AmFormat { sn: AmSnLength::Bits16, li: LiLength::Bits11 };

/// The data field with the FI field `fi`.
fn field(fi: u8, ends: &[u32], octets: &'static [u8]) -> DataField<'static> {
    DataField { starts_sdu: fi & 0b10 == 0, ends_sdu: fi & 0b01 == 0, ends: ends.into(), octets }
}

/// Wireshark decodes each of these byte strings as the PDU next to it.
#[test]
fn amd_pdus_match_wireshark_decoding() {
    let li_15 = |format| AmFormat { li: LiLength::Bits15, ..format };
    for (header, format, poll, sn, data) in [
        ("a005", SHORT, true, 5, field(0b00, &[], D)),
        ("8c060040", SHORT, false, 6, field(0b01, &[4], D)),
        ("9c07803005", SHORT, false, 7, field(0b11, &[3, 8], D)),
        ("a09c40", LONG, true, 40_000, field(0b00, &[], D)),
        ("842880030004", li_15(SHORT), false, 40, field(0b00, &[3, 7], D)),
        ("849c410003", li_15(LONG), false, 40_001, field(0b00, &[3], D)),
    ] {
        let octets = [&hex(header), data.octets].concat();
        let amd = Amd { poll, sn, segment: None, data };
        assert_eq!(amd.encode(format), octets, "{header}");
        assert_eq!(amd.header(format), header.len() / 2);
        assert_eq!(decode(&octets, format), Ok(Pdu::Data(amd)), "{header}");
    }
}

#[test]
fn amd_pdu_segments_match_wireshark_decoding() {
    for (header, format, poll, sn, so, is_last, data) in [
        ("e8068004", SHORT, true, 6, 4, true, field(0b01, &[], &D[4..])),
        ("d0070000", SHORT, false, 7, 0, false, field(0b10, &[], &D[..3])),
        ("cc0780030050", SHORT, false, 7, 3, true, field(0b01, &[5], &D[3..])),
        ("ca9c40012c", LONG, false, 40_000, 300, true, field(0b01, &[], D)),
    ] {
        let octets = [&hex(header), data.octets].concat();
        let amd = Amd { poll, sn, segment: Some(SegmentFields { is_last, so }), data };
        assert_eq!(amd.encode(format), octets, "{header}");
        assert_eq!(amd.header(format), header.len() / 2);
        assert_eq!(decode(&octets, format), Ok(Pdu::Data(amd)), "{header}");
    }
}

#[test]
fn status_pdus_match_wireshark_decoding() {
    let nack = |sn, segment: Option<(u32, Option<u32>)>| Nack {
        segment: segment.map(|(start, end)| NackSegment { start, end }),
        ..Nack::of(sn)
    };
    for (text, format, ack_sn, nacks) in [
        ("0020", SHORT, 8, vec![]),
        ("002203403a000ffff8", SHORT, 8, vec![nack(6, None), nack(7, Some((3, None)))]),
        ("0022032001000480", SHORT, 8, vec![nack(6, Some((4, Some(9))))]),
        ("09c42ce2060259ffff388200", LONG, 40_002, vec![nack(40_000, Some((300, None))), nack(40_001, None)]),
    ] {
        let status = Status { ack_sn, nacks };
        assert_eq!(encode_status(&status, format.sn), hex(text), "{status:?}");
        assert_eq!(format.sn.report_format().octets(&status), text.len() / 2);
        assert_eq!(decode(&hex(text), format), Ok(Pdu::Status(status)), "{text}");
    }
}

#[test]
fn umd_pdus_have_the_header_of_the_standard() {
    for (header, length, sn, data) in [
        ("05", UmSnLength::Bits5, 5, field(0b00, &[], D)),
        ("bf0040", UmSnLength::Bits5, 31, field(0b10, &[4], D)),
        ("0bff", UmSnLength::Bits10, 0x3ff, field(0b01, &[], D)),
        ("1d01803005", UmSnLength::Bits10, 0x101, field(0b11, &[3, 8], D)),
    ] {
        let octets = [&hex(header), data.octets].concat();
        let umd = Umd { sn, data };
        assert_eq!(umd.encode(length), octets, "{header}");
        assert_eq!(Umd::decode(&octets, length), Ok(umd), "{header}");
    }
}

/// Wireshark does not report a Length Indicator of 0.
#[test]
fn malformed_pdus_are_refused() {
    use ReceiveError as E;
    for (text, error) in [
        ("", E::Empty),
        ("80", E::HeaderTruncated),
        ("8005", E::NoData),
        ("c00500", E::HeaderTruncated),
        ("c0050000", E::NoData),
        ("1000", E::ControlType(1)),
        ("00", E::HeaderTruncated),
        ("0022", E::HeaderTruncated),
        ("002203", E::HeaderTruncated),
        ("84050000 10", E::LengthIndicatorZero),
        ("840500", E::HeaderTruncated),
        ("84050020 1011", E::LengthIndicators { claimed: 3, octets: 2 }),
        ("84050020", E::NoData),
    ] {
        assert_eq!(decode(&hex(text), SHORT), Err(error), "{text}");
    }
    let segment = Some(NackSegment { start: 10, end: Some(9) });
    let status = Status { ack_sn: 8, nacks: vec![Nack { segment, ..Nack::of(6) }] };
    let error = Err(E::NackSegment { start: 10, end: 9 });
    assert_eq!(decode(&encode_status(&status, AmSnLength::Bits10), SHORT), error);
    assert_eq!(Umd::decode(&[], UmSnLength::Bits5), Err(E::Empty));
    assert_eq!(Umd::decode(&[0], UmSnLength::Bits10), Err(E::HeaderTruncated));
    assert_eq!(Umd::decode(&[0], UmSnLength::Bits5), Err(E::NoData));
}

#[test]
fn reserved_bits_are_ignored() {
    let octets = hex("839c4010");
    let Ok(Pdu::Data(amd)) = decode(&octets, LONG) else { panic!("R1 is ignored without RF") };
    assert_eq!((amd.sn, amd.segment, amd.data.ends), (40_000, None, smallvec![]));
    assert_eq!(Umd::decode(&hex("e00510"), UmSnLength::Bits10).map(|umd| umd.sn), Ok(5));
}

fn formats() -> impl Strategy<Value = AmFormat> {
    let sn = prop::sample::select(vec![AmSnLength::Bits10, AmSnLength::Bits16]);
    (sn, prop::sample::select(vec![LiLength::Bits11, LiLength::Bits15]))
        .prop_map(|(sn, li)| AmFormat { sn, li })
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn encoded_pdu_decodes_unchanged(
        format in formats(),
        (poll, starts_sdu, ends_sdu) in any::<(bool, bool, bool)>(),
        sn in any::<u32>(),
        segment in prop::option::of((any::<bool>(), 0_u32..0x7fff)),
        lengths in prop::collection::vec(1_u32..2047, 0..40),
        last in 1_u32..3000,
    ) {
        let ends: Offsets = lengths.iter().scan(0, |end, length| { *end += length; Some(*end) }).collect();
        let octets = vec![7; (ends.last().unwrap_or(&0) + last) as usize];
        let data = DataField { starts_sdu, ends_sdu, ends, octets: &octets };
        let segment = segment.map(|(is_last, so)| SegmentFields { is_last, so });
        let amd = Amd { poll, sn: format.sn.bits().wire(sn.into()), segment, data };
        let encoded = amd.encode(format);
        prop_assert_eq!(encoded.len(), amd.header(format) + octets.len());
        prop_assert_eq!(decode(&encoded, format), Ok(Pdu::Data(amd)));
    }

    #[test]
    fn encoded_status_decodes_unchanged(
        format in formats(),
        ack_sn in any::<u16>(),
        nacks in prop::collection::vec((any::<u16>(), prop::option::of((0_u32..0x4000, 0_u32..0x3fff))), 0..60),
    ) {
        let bits = format.sn.bits();
        let nacks = nacks.into_iter().map(|(sn, segment)| Nack {
            segment: segment.map(|(start, more)| NackSegment { start, end: Some(start + more) }),
            ..Nack::of(bits.wire(sn.into()).into())
        });
        let status = Status { ack_sn: bits.wire(ack_sn.into()).into(), nacks: nacks.collect() };
        let encoded = encode_status(&status, format.sn);
        prop_assert_eq!(encoded.len(), format.sn.report_format().octets(&status));
        prop_assert_eq!(decode(&encoded, format), Ok(Pdu::Status(status)));
    }

    /// Decoding does not panic, and a decoded PDU survives encoding.
    #[test]
    fn decoded_pdu_survives_reencoding(format in formats(), octets in prop::collection::vec(any::<u8>(), 0..60)) {
        let decoded = decode(&octets, format);
        let again = match &decoded {
            Ok(Pdu::Data(amd)) => amd.encode(format),
            Ok(Pdu::Status(status)) => encode_status(status, format.sn),
            Err(_) => octets.clone(),
        };
        prop_assert_eq!(decode(&again, format), decoded);
        for length in [UmSnLength::Bits5, UmSnLength::Bits10] {
            let decoded = Umd::decode(&octets, length);
            let again = decoded.as_ref().map_or_else(|_| octets.clone(), |umd| umd.encode(length));
            prop_assert_eq!(Umd::decode(&again, length), decoded);
        }
    }
}
