use airtcp_testkit::sample::cases;
use proptest::prelude::*;

use super::*;
use crate::rlc::umts::pdu::{Amd, ListItem, Mrw, MrwAck, Previous, Rest, Sn, Status, Sufi};

const PDU_42: Format = Format::fixed(42);
const HE_SPECIAL: Format = Format { he_special: true, ..PDU_42 };
/// 127 bytes is the smallest PDU size with 15-bit indicators, 126 the largest with 7-bit indicators.
const PDU_127: Format = Format::fixed(127);
const PDU_126: Format = Format::fixed(126);

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.bytes().filter(|c| !c.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn padded(text: &str) -> Vec<u8> {
    let mut octets = hex(text);
    assert!(octets.len() <= 42);
    octets.resize(42, 0);
    octets
}

fn sn(value: u16) -> Sn {
    Sn::new(value)
}

fn status(sufis: impl Into<Vec<Sufi>>) -> Pdu<'static> {
    Pdu::Status(Status(sufis.into()))
}

fn list(items: &[(u16, u8)]) -> Sufi {
    Sufi::List(items.iter().map(|(first, further)| ListItem { sn: sn(*first), further: *further }).collect())
}

fn ack(lsn: u16) -> Sufi {
    Sufi::Ack { lsn: sn(lsn) }
}

fn decoded(octets: &[u8]) -> Result<Pdu<'_>, DecodeError> {
    decode(octets, PDU_42)
}

fn octets(n: usize) -> Vec<u8> {
    (0..n).map(|n| n as u8 + 1).collect()
}

fn assert_encoding(text: &str, pdu: &Pdu<'_>) {
    assert_eq!(decoded(&padded(text)).as_ref(), Ok(pdu), "{text}");
    assert_eq!(encode(pdu, PDU_42), padded(text), "{pdu:?}");
}

/// Each byte string is listed with the PDU that Wireshark decodes.
#[test]
fn control_pdus_match_wireshark_decoding() {
    let codewords = vec![9, 1, 7, 8, 5];
    let mrw = |sns: &[u16], long_distance, nlength| {
        Sufi::Mrw(Mrw { sns: sns.iter().copied().map(sn).collect(), long_distance, nlength })
    };
    for (text, pdu) in [
        ("020050", status([ack(5)])),
        ("01080000", status([Sufi::Window { wsn: 128 }, Sufi::NoMore])),
        ("032004100a0200c0", status([list(&[(4, 1), (10, 0)]), ack(12)])),
        ("041064b7ff2074", status([Sufi::Bitmap { fsn: sn(100), bits: vec![0xb7, 0xff] }, ack(116)])),
        ("0550019178520280", status([Sufi::Rlist { fsn: sn(1), codewords }, ack(40)])),
        ("062007009200", status([mrw(&[7, 9], false, 2), Sufi::NoMore])),
        ("0600c80000", status([mrw(&[200], true, 0), Sufi::NoMore])),
        ("0720090000", status([Sufi::MrwAck(MrwAck { n: 2, sn_ack: sn(9) }), Sufi::NoMore])),
        (
            "07000931014f2032",
            status([Sufi::MrwAck(MrwAck { n: 0, sn_ack: sn(9) }), list(&[(20, 15)]), ack(50)]),
        ),
        ("0804d00000", status([Sufi::Poll { sn: sn(77) }, Sufi::NoMore])),
        ("1812345000", Pdu::Reset(Reset { rsn: true, hfni: 0x12345 })),
        ("2812346000", Pdu::ResetAck(Reset { rsn: true, hfni: 0x12346 })),
    ] {
        assert_encoding(text, &pdu);
    }
}

#[test]
fn data_pdus_match_wireshark_decoding() {
    let data: String = octets(20).iter().map(|octet| format!("{octet:02x}")).collect();
    let amd = Amd { data: octets(20).into(), ends: vec![20], ..Amd::default() };
    let with_padding = Amd { sn: sn(2), poll: true, rest: Rest::Padding, ..amd.clone() };
    assert_encoding(&format!("801529fe{data}"), &Pdu::Amd(with_padding));
    let report = Rest::Piggybacked(Status(vec![list(&[(5, 0)]), ack(9)]));
    assert_encoding(
        &format!("800929fc{data}031005020090"),
        &Pdu::Amd(Amd { sn: sn(1), rest: report, ..amd }),
    );
}

#[test]
fn amd_pdus_have_specified_headers() {
    let amd = |ends: &[u16], data, rest| Amd {
        ends: ends.to_vec(),
        data: octets(data).into(),
        rest,
        ..Amd::default()
    };
    let only_li_0 = Amd { previous: Previous::EndedExactly, ..amd(&[], 0, Rest::Padding) };
    let one_short = Amd { previous: Previous::EndedOneShort, ..amd(&[100], 100, Rest::Padding) };
    for (name, format, amd, header) in [
        ("without indicators", PDU_42, Amd { sn: sn(0xabc), ..amd(&[], 40, Rest::Nothing) }, "d5e0 01"),
        // If the indicators were lengths, the PDU would contain SDUs of 10 and 30 bytes.
        ("indicators are offsets", PDU_42, amd(&[10, 30], 30, Rest::Padding), "8001 15 3d fe"),
        ("an SDU ends with the PDU", PDU_42, amd(&[39], 39, Rest::Nothing), "8001 4e"),
        ("one spare byte holds an indicator", PDU_42, amd(&[38], 38, Rest::Padding), "8001 4d fe"),
        ("HE = 10", HE_SPECIAL, amd(&[], 40, Rest::SduEnd), "8002"),
        ("only LI 0", PDU_42, only_li_0, "8001 01 fe"),
        ("15-bit indicators", PDU_127, one_short, "8001 fff7 00c9 fffe"),
        ("the 7-bit indicator 123 is an offset", PDU_126, amd(&[123], 123, Rest::Nothing), "8001 f6"),
    ] {
        let written = encode_amd(&amd, format);
        assert_eq!(written.len(), format.pdu_size, "{name}");
        assert!(written.starts_with(&hex(header)), "{name}: {written:02x?}");
        assert_eq!(decode(&written, format), Ok(Pdu::Amd(amd)), "{name}");
    }
    let he_10 = encode_amd(&amd(&[], 40, Rest::SduEnd), HE_SPECIAL);
    assert_eq!(decoded(&he_10), Err(DecodeError::HeNotConfigured));
}

/// §9.2.2.8: the byte is neither data nor padding with an indicator.
#[test]
fn spare_byte_after_15_bit_indicator_is_ignored() {
    let amd = Amd { ends: vec![122], data: octets(122).into(), ..Amd::default() };
    let mut written = encode_amd(&amd, PDU_127);
    assert_eq!(written.len(), 127);
    written[126] = 0xaa;
    assert_eq!(decode(&written, PDU_127), Ok(Pdu::Amd(amd)));
}

#[test]
fn padding_content_is_ignored() {
    let mut written = padded("020050");
    written[3..].fill(0x99);
    assert_eq!(decoded(&written), Ok(status([ack(5)])));
    assert_eq!(decoded(&hex("020050")), Ok(status([ack(5)])), "a control PDU may be shorter");
}

#[test]
fn decoder_rejects_invalid_and_reserved_values() {
    use DecodeError as E;
    for (text, error) in [
        // AMD.
        ("8003", E::HeReserved),
        ("8001f8", E::LiReserved(0x7c)),
        ("8001fa", E::LiReserved(0x7d)),
        ("80013d28", E::LiNotAscending { li: 20, before: 30 }),
        ("80013d3c", E::LiNotAscending { li: 30, before: 30 }),
        ("80012900", E::LiNotFirst(0)),
        ("8001ff28", E::LiNotLast(0x7f)),
        ("8001fd28", E::LiNotLast(0x7e)),
        ("800164", E::LiBeyondPdu { li: 50, room: 39 }),
        ("800150", E::LiBeyondPdu { li: 40, room: 39 }),
        ("80014ffe", E::LiBeyondPdu { li: 39, room: 38 }),
        // Piggybacked STATUS.
        ("8001fc8020050", E::R2),
        ("8001fc10", E::PiggybackedType(1)),
        ("8001fc09", E::SufiType(9)),
        ("80014dfc", E::Truncated),
        // Control.
        ("30", E::ControlType(3)),
        ("50", E::ControlType(5)),
        ("70", E::ControlType(7)),
        ("1112345000", E::R1(1)),
        ("2c12345000", E::R1(4)),
        ("09", E::SufiType(9)),
        ("0f", E::SufiType(15)),
        ("0300", E::EmptyList),
        ("0510012000", E::Rlist(RlistError::Unfinished)),
        ("0510011000", E::Rlist(RlistError::BurstWithoutLength)),
        ("052001110", E::Rlist(RlistError::BurstWithoutLength)),
        ("052001010", E::Rlist(RlistError::Zero)),
    ] {
        let text = if text.len() % 2 == 1 { format!("{text}0") } else { text.to_owned() };
        assert_eq!(decoded(&padded(&text)), Err(error), "{text}");
    }
    assert_eq!(decoded(&[]), Err(E::Empty));
    assert_eq!(decoded(&[0x80; 41]), Err(E::AmdSize { octets: 41, pdu_size: 42 }));
    assert_eq!(decoded(&[0x80; 43]), Err(E::AmdSize { octets: 43, pdu_size: 42 }));
    assert_eq!(decoded(&[0x00; 43]), Err(E::ControlSize { octets: 43, pdu_size: 42 }));
    assert_eq!(decoded(&hex("181234")), Err(E::Truncated));
}

#[test]
fn length_indicators_filling_whole_pdu_are_rejected() {
    let ascending: Vec<_> = (1..=40).map(|li: u8| li << 1 | 1).collect();
    let pdu = [vec![0x80, 0x01], ascending].concat();
    assert_eq!(decoded(&pdu), Err(DecodeError::Truncated));
}

#[test]
fn decoder_rejects_reserved_15_bit_indicators() {
    for (li, expected) in [
        (0x7ffa_u16, Some(DecodeError::LiReserved(0x7ffa))),
        (0x7ffc, Some(DecodeError::LiReserved(0x7ffc))),
        (0x7ffd, Some(DecodeError::LiReserved(0x7ffd))),
        (0x7ff9, Some(DecodeError::LiBeyondPdu { li: 0x7ff9, room: 123 })),
        (0x7ffb, None),
        (0x7fff, None),
    ] {
        let mut pdu = vec![0; 127];
        pdu[..2].copy_from_slice(&[0x80, 0x01]);
        pdu[2..4].copy_from_slice(&(li << 1).to_be_bytes());
        assert_eq!(decode(&pdu, PDU_127).err(), expected, "{li:#x}");
    }
    let mut second = vec![0; 127];
    second[..6].copy_from_slice(&hex("8001 0015 fff6"));
    assert_eq!(decode(&second, PDU_127), Err(DecodeError::LiNotFirst(0x7ffb)));
}

/// §9.2.2.11.1: NO_MORE or ACK ends a STATUS PDU. Padding with zeros decodes as NO_MORE, so only a full PDU
/// can lack both.
#[test]
fn status_pdu_without_terminating_sufi_is_rejected() {
    assert_eq!(decoded(&hex("070009")), Err(DecodeError::Truncated), "ends after a super-field");
    assert_eq!(decoded(&hex("07000918")), Err(DecodeError::Truncated), "ends inside a super-field");
    assert!(decoded(&hex("0700090000")).is_ok());
}

#[test]
fn first_rlist_code_word_is_least_significant() {
    let gaps: Result<Vec<_>, _> = expand_rlist(sn(1), &[9, 1, 7, 8, 5]).collect();
    let gaps: Vec<_> = gaps.unwrap().into_iter().map(|gap| (gap.first.get(), gap.count)).collect();
    assert_eq!(gaps, [(1, 1), (5, 1), (6, 3), (28, 1)]);
    let mut codewords = Vec::new();
    push_distance(4, &mut codewords);
    push_burst(3, &mut codewords);
    push_distance(20, &mut codewords);
    assert_eq!(codewords, [9, 1, 7, 8, 5]);
}

#[test]
fn rlist_beyond_full_sequence_space_is_rejected() {
    let to = |n: u16| {
        let mut codewords = Vec::new();
        push_distance(n, &mut codewords);
        codewords
    };
    let last = |codewords: &[u8]| expand_rlist(sn(4000), codewords).last().unwrap();
    assert_eq!(last(&to(4095)).map(|gap| gap.first.get()), Ok(3999));
    assert_eq!(last(&[to(4095), to(1)].concat()), Err(RlistError::TooFar));
    assert_eq!(last(&[0x0e; 15]), Err(RlistError::Unfinished));
    assert_eq!(
        last(&[[0x0e; 14].as_slice(), &[0x0f]].concat()),
        Err(RlistError::TooFar),
        "a number with 45 bits set"
    );
}

#[test]
#[should_panic(expected = "ACK or NO_MORE")]
fn encoder_panics_on_sufi_after_ack() {
    encode(&status([ack(1), Sufi::NoMore]), PDU_42);
}

#[test]
#[should_panic(expected = "not filled")]
fn encoder_panics_on_unfilled_pdu_without_padding_indicator() {
    encode_amd(&Amd { data: octets(39).into(), ..Amd::default() }, PDU_42);
}

fn any_sn() -> impl Strategy<Value = Sn> + Clone {
    (0..Sn::MODULUS).prop_map(Sn::new)
}

fn any_rlist() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((any::<bool>(), 1..200_u16), 0..5).prop_map(|numbers| {
        let mut codewords = Vec::new();
        for (burst, n) in numbers {
            let push = if burst { push_burst } else { push_distance };
            push(n, &mut codewords);
        }
        let mut fits = codewords.len().min(15);
        while expand_rlist(Sn::ZERO, &codewords[..fits]).any(|gap| gap.is_err()) {
            fits -= 1;
        }
        codewords.truncate(fits);
        codewords
    })
}

fn any_sufi(sn: impl Strategy<Value = Sn> + Clone) -> impl Strategy<Value = Sufi> {
    let item = (sn.clone(), 0..16_u8).prop_map(|(sn, further)| ListItem { sn, further });
    prop_oneof![
        (0..4096_u16).prop_map(|wsn| Sufi::Window { wsn }),
        prop::collection::vec(item, 1..=15).prop_map(Sufi::List),
        (sn.clone(), prop::collection::vec(any::<u8>(), 1..=16))
            .prop_map(|(fsn, bits)| Sufi::Bitmap { fsn, bits }),
        (sn.clone(), any_rlist()).prop_map(|(fsn, codewords)| Sufi::Rlist { fsn, codewords }),
        (prop::collection::vec(sn.clone(), 1..=15), any::<bool>(), 0..16_u8).prop_map(
            |(sns, far, nlength)| {
                let long_distance = far && sns.len() == 1;
                Sufi::Mrw(Mrw { sns, long_distance, nlength })
            }
        ),
        (0..16_u8, sn.clone()).prop_map(|(n, sn_ack)| Sufi::MrwAck(MrwAck { n, sn_ack })),
        sn.prop_map(|sn| Sufi::Poll { sn }),
    ]
}

/// A STATUS PDU of at most `octets` bytes, which must be at least 3.
fn any_status(octets: usize, sn: impl Strategy<Value = Sn> + Clone) -> impl Strategy<Value = Status> {
    let end = prop_oneof![Just(Sufi::NoMore), sn.clone().prop_map(|lsn| Sufi::Ack { lsn })];
    (prop::collection::vec(any_sufi(sn), 0..5), end).prop_map(move |(mut sufis, end)| {
        sufis.push(end);
        let mut status = Status(sufis);
        while status.octets() > octets {
            status.0.remove(0);
        }
        status
    })
}

fn any_format() -> impl Strategy<Value = Format> {
    let sizes = prop_oneof![Just(42_usize), Just(126), Just(127), 20..400_usize];
    (sizes, any::<bool>()).prop_map(|(pdu_size, he_special)| Format { he_special, ..Format::fixed(pdu_size) })
}

/// Removes the last SDU ends that do not fit into the PDU. Returns the other ends and the length of the data.
fn fit(format: Format, previous: &Previous, rest: &Rest, mut ends: Vec<u16>) -> (Vec<u16>, usize) {
    let (li, body) = (format.li_octets(), format.body());
    let announced = matches!(rest, Rest::Padding | Rest::Piggybacked(_));
    let taken = if let Rest::Piggybacked(status) = rest { status.octets() } else { 0 };
    let indicators = |ends: &[u16]| {
        li * (ends.len() + usize::from(*previous != Previous::NotIndicated) + usize::from(announced))
    };
    while ends.last().is_some_and(|end| indicators(&ends) + usize::from(*end) + taken > body) {
        ends.pop();
    }
    let room = body - indicators(&ends);
    let last = ends.last().map_or(0, |end| usize::from(*end));
    let length = match rest {
        Rest::Padding | Rest::Piggybacked(_) => last,
        Rest::Nothing if li == 2 && last > 0 && last + 1 == room => last,
        Rest::Nothing | Rest::SduEnd => room,
    };
    (ends, length)
}

fn any_amd(format: Format, sn: impl Strategy<Value = Sn> + Clone) -> impl Strategy<Value = Amd<'static>> {
    let body = format.body();
    let head = (sn.clone(), any::<bool>(), 0..3_u8);
    let ends = prop::collection::btree_set(1..body as u16, 0..4);
    let octets = prop::collection::vec(any::<u8>(), body);
    (head, ends, 0..4_u8, octets, any_status(5, sn)).prop_map(
        move |((sn, poll, previous), ends, rest, octets, status)| {
            let previous = match previous {
                1 => Previous::EndedExactly,
                2 if format.li_octets() == 2 => Previous::EndedOneShort,
                _ => Previous::NotIndicated,
            };
            let rest = match rest {
                0 if format.he_special && previous == Previous::NotIndicated => Rest::SduEnd,
                1 => Rest::Padding,
                2 => Rest::Piggybacked(status),
                _ => Rest::Nothing,
            };
            let ends = if rest == Rest::SduEnd { Vec::new() } else { ends.into_iter().collect() };
            let (ends, length) = fit(format, &previous, &rest, ends);
            Amd { sn, poll, previous, ends, data: octets[..length].to_vec().into(), rest }
        },
    )
}

/// A PDU that can be encoded in this format. `sn` generates all of its sequence numbers.
pub(crate) fn any_pdu(
    format: Format,
    sn: impl Strategy<Value = Sn> + Clone,
) -> impl Strategy<Value = Pdu<'static>> {
    let reset = (any::<bool>(), 0..1_u32 << 20).prop_map(|(rsn, hfni)| Reset { rsn, hfni });
    prop_oneof![
        4 => any_amd(format, sn.clone()).prop_map(Pdu::Amd),
        4 => any_status(format.pdu_size, sn).prop_map(Pdu::Status),
        1 => reset.clone().prop_map(Pdu::Reset),
        1 => reset.prop_map(Pdu::ResetAck),
    ]
}

fn any_encodable() -> impl Strategy<Value = (Format, Pdu<'static>)> {
    any_format().prop_flat_map(|format| (Just(format), any_pdu(format, any_sn())))
}

/// A PDU with a few bytes changed, which gets further into the decoder than random bytes.
fn any_octets() -> impl Strategy<Value = (Format, Vec<u8>)> {
    let noise = (any_format(), prop::collection::vec(any::<u8>(), 0..130));
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let damaged = (any_encodable(), damage).prop_map(|((format, pdu), damage)| {
        let mut octets = encode(&pdu, format);
        for (index, value) in damage {
            let length = octets.len();
            // Most changes are in the header and in the first indicators.
            octets[index.index(length.min(8 + usize::from(value) % length))] = value;
        }
        (format, octets)
    });
    prop_oneof![1 => noise, 3 => damaged]
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn encoded_pdu_decodes_unchanged((format, pdu) in any_encodable()) {
        let octets = encode(&pdu, format);
        prop_assert_eq!(octets.len(), format.pdu_size);
        prop_assert_eq!(decode(&octets, format), Ok(pdu));
    }

    #[test]
    fn decoded_pdu_survives_reencoding((format, octets) in any_octets()) {
        if let Ok(pdu) = decode(&octets, format) {
            let again = encode(&pdu, format);
            prop_assert_eq!(decode(&again, format), Ok(pdu));
        }
    }

    #[test]
    fn status_size_matches_encoded_length(status in any_status(400, any_sn())) {
        prop_assert_eq!(sufi::encode(&status).len(), status.octets());
    }
}
