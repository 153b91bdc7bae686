use airtcp_testkit::sample::cases;
use proptest::prelude::*;

use super::*;
use crate::rlc::am::testing::hex;

/// The data of all vectors.
const D: &[u8] = &[0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19];

fn nack(sn: u64, range: u8, segment: Option<(u32, Option<u32>)>) -> Nack {
    Nack { sn, range, segment: segment.map(|(start, end)| NackSegment { start, end }) }
}

fn assert_status(text: &str, length: AmSnLength, ack_sn: u64, nacks: &[Nack]) {
    let status = Status { ack_sn, nacks: nacks.to_vec() };
    assert_eq!(encode_status(&status, length), hex(text), "{status:?}");
    assert_eq!(decode(&hex(text), length), Ok(Pdu::Status(status)), "{text}");
}

/// Wireshark decodes each of these byte strings as the PDU next to it.
#[test]
fn amd_pdus_match_wireshark_decoding() {
    use AmSnLength::{Bits12, Bits18};
    use Position::{First, Last, Middle, Whole};
    for (header, length, poll, sn, position) in [
        ("c005", Bits12, true, 5, Whole),
        ("9006", Bits12, false, 6, First),
        ("b006000a", Bits12, false, 6, Middle { so: 10 }),
        ("e0060014", Bits12, true, 6, Last { so: 20 }),
        ("c30d40", Bits18, true, 200_000, Whole),
        ("930d41", Bits18, false, 200_001, First),
        ("a30d4103e8", Bits18, false, 200_001, Last { so: 1000 }),
    ] {
        let octets = [&hex(header), D].concat();
        let amd = Amd { poll, position, sn, data: D };
        assert_eq!(amd.encode(length), octets, "{header}");
        assert_eq!(decode(&octets, length), Ok(Pdu::Data(amd)), "{header}");
    }
}

#[test]
fn status_pdus_match_wireshark_decoding() {
    use AmSnLength::{Bits12, Bits18};
    assert_status("000700", Bits12, 7, &[]);
    assert_status(
        "00648005a805bc000a001305da0406260005ffff02",
        Bits12,
        100,
        &[
            nack(90, 1, None),
            nack(91, 1, Some((10, Some(19)))),
            nack(93, 4, None),
            nack(98, 2, Some((5, None))),
        ],
    );
    assert_status("0c3508", Bits18, 200_002, &[]);
    assert_status(
        "0c352ac35070000a03e7c350c803",
        Bits18,
        200_010,
        &[nack(200_001, 1, Some((10, Some(999)))), nack(200_003, 3, None)],
    );
}

#[test]
fn umd_pdus_have_the_header_of_the_standard() {
    use Position::{First, Last, Middle, Whole};
    use UmSnLength::{Bits6, Bits12};
    for (header, length, sn, position) in [
        ("00", Bits6, None, Whole),
        ("00", Bits12, None, Whole),
        ("45", Bits6, Some(5), First),
        ("c5000a", Bits6, Some(5), Middle { so: 10 }),
        ("85000a", Bits6, Some(5), Last { so: 10 }),
        ("4abc", Bits12, Some(0xabc), First),
        ("cabc0123", Bits12, Some(0xabc), Middle { so: 0x123 }),
        ("8abc0123", Bits12, Some(0xabc), Last { so: 0x123 }),
    ] {
        let octets = [&hex(header), D].concat();
        let umd = Umd { position, sn, data: D };
        assert_eq!(umd.encode(length), octets, "{header}");
        assert_eq!(Umd::decode(&octets, length), Ok(umd), "{header}");
        assert_eq!(length.header(position), header.len() / 2);
    }
}

#[test]
fn reserved_bits_are_ignored() {
    let Ok(Pdu::Data(amd)) = decode(&[0x8c, 0, 5, 1], AmSnLength::Bits18) else { panic!() };
    assert_eq!((amd.sn, amd.data), (5, &[1][..]));
    let status = Pdu::Status(Status { ack_sn: 7, nacks: vec![] });
    assert_eq!(decode(&hex("00077f"), AmSnLength::Bits12), Ok(status));
    // §6.2.2.3: a UMD PDU with a whole SDU has six reserved bits.
    assert_eq!(Umd::decode(&[0x3f, 1], UmSnLength::Bits6).map(|umd| umd.sn), Ok(None));
}

#[test]
fn malformed_pdus_are_refused() {
    use AmSnLength::{Bits12, Bits18};
    use ReceiveError as E;
    for (text, length, error) in [
        ("", Bits12, E::Empty),
        ("c0", Bits12, E::HeaderTruncated),
        ("c005", Bits12, E::NoData),
        ("c30d40", Bits18, E::NoData),
        ("b00600", Bits12, E::HeaderTruncated),
        ("b006000011", Bits12, E::SegmentOffset),
        ("1007000000", Bits12, E::ControlType(1)),
        ("0007", Bits12, E::HeaderTruncated),
        ("00648005", Bits12, E::HeaderTruncated),
        ("00648005a4000a00", Bits12, E::HeaderTruncated),
        ("00648005a200", Bits12, E::NackRange),
        ("00648005a400130012", Bits12, E::NackSegment { start: 19, end: 18 }),
    ] {
        assert_eq!(decode(&hex(text), length), Err(error), "{text}");
    }
    assert_eq!(Umd::decode(&[], UmSnLength::Bits6), Err(E::Empty));
    assert_eq!(Umd::decode(&[0x40], UmSnLength::Bits6), Err(E::NoData));
    assert_eq!(Umd::decode(&[0xc0, 0], UmSnLength::Bits6), Err(E::HeaderTruncated));
}

fn any_length() -> impl Strategy<Value = AmSnLength> {
    prop::sample::select(vec![AmSnLength::Bits12, AmSnLength::Bits18])
}

fn any_status() -> impl Strategy<Value = Status> {
    let segment = prop::option::of((any::<u16>(), prop::option::of(0_u16..0xffff)));
    let nack = (any::<u32>(), 1_u8..=255, segment).prop_map(|(sn, range, segment)| {
        let segment =
            segment.map(|(start, end)| (u32::from(start), end.map(|end| u32::from(end.max(start)))));
        nack(sn.into(), range, segment.filter(|(_, end)| end.is_none_or(|end| end < 0xffff)))
    });
    (any::<u32>(), prop::collection::vec(nack, 0..30))
        .prop_map(|(ack_sn, nacks)| Status { ack_sn: ack_sn.into(), nacks })
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn encoded_status_decodes_unchanged(length in any_length(), mut status in any_status()) {
        let octets = encode_status(&status, length);
        prop_assert_eq!(octets.len(), length.report_format().octets(&status));
        let bits = length.bits();
        status.ack_sn = bits.wire(status.ack_sn).into();
        status.nacks.iter_mut().for_each(|nack| nack.sn = bits.wire(nack.sn).into());
        prop_assert_eq!(decode(&octets, length), Ok(Pdu::Status(status)));
    }

    /// Decoding does not panic. Encoding a decoded data PDU yields the same octets, except for reserved bits.
    #[test]
    fn decoded_pdu_survives_reencoding(
        length in any_length(),
        mut octets in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        match decode(&octets, length) {
            Ok(Pdu::Data(amd)) => {
                let encoded = amd.encode(length);
                if length == AmSnLength::Bits18 {
                    octets[0] &= 0xf3;
                }
                prop_assert_eq!(&encoded, &octets);
            }
            Ok(Pdu::Status(status)) => {
                let again = encode_status(&status, length);
                prop_assert_eq!(decode(&again, length), Ok(Pdu::Status(status)));
            }
            Err(_) => {}
        }
        for length in [UmSnLength::Bits6, UmSnLength::Bits12] {
            let _ = Umd::decode(&octets, length);
        }
    }
}
