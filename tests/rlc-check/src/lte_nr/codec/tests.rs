//! PDUs in hexadecimal, as tshark decodes them.

use super::*;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Decodes a data PDU with ten octets of data or fewer. Returns SN, P, SO, whether the PDU ends its unit, the
/// layout, and the number of octets.
fn data(generation: Generation, text: &str) -> (u32, bool, u32, bool, (u8, Vec<u32>), usize) {
    let pdu = hex(text);
    let Ok(Pdu::Data(data)) = decode(generation, &pdu) else { panic!("{:?}", decode(generation, &pdu)) };
    let fi = u8::from(data.layout.continues) << 1 | u8::from(data.layout.is_continued);
    (data.sn, data.poll, data.start, data.ends, (fi, data.layout.boundaries), data.octets.len())
}

/// SN, number of units, SO of the start, and SO of the end.
type NackFields = (u32, u32, u32, Option<u32>);

fn status(generation: Generation, text: &str) -> (u32, Vec<NackFields>) {
    let pdu = hex(text);
    let Ok(Pdu::Status(status)) = decode(generation, &pdu) else { panic!("{:?}", decode(generation, &pdu)) };
    (status.ack, status.nacks.iter().map(|nack| (nack.sn, nack.count, nack.start, nack.end)).collect())
}

#[test]
fn nr_data_pdus_are_decoded() {
    let none = || (0, vec![]);
    let of_12 = |text| data(Generation::Nr(12), text);
    assert_eq!(of_12("c00510111213141516171819"), (5, true, 0, true, none(), 10));
    assert_eq!(of_12("900610111213141516171819"), (6, false, 0, false, none(), 10));
    assert_eq!(of_12("b006000a1011"), (6, false, 10, false, none(), 2));
    assert_eq!(of_12("e00600141011"), (6, true, 20, true, none(), 2));
    let of_18 = |text| data(Generation::Nr(18), text);
    assert_eq!(of_18("c30d4010"), (200_000, true, 0, true, none(), 1));
    assert_eq!(of_18("a30d4103e810"), (200_001, false, 1000, true, none(), 1));
}

#[test]
fn lte_data_pdus_are_decoded() {
    let of_10 = |text| data(Generation::Lte(10), text);
    assert_eq!(of_10("a00510111213141516171819"), (5, true, 0, true, (0, vec![]), 10));
    assert_eq!(of_10("8c06004010111213141516171819"), (6, false, 0, true, (1, vec![4]), 10));
    assert_eq!(of_10("9c0780300510111213141516171819"), (7, false, 0, true, (3, vec![3, 8]), 10));
    assert_eq!(of_10("e8068004141516171819"), (6, true, 4, true, (1, vec![]), 6));
    assert_eq!(of_10("d0070000101112"), (7, false, 0, false, (2, vec![]), 3));
    assert_eq!(of_10("cc078003005013141516171819"), (7, false, 3, true, (1, vec![5]), 7));
    let of_16 = |text| data(Generation::Lte(16), text);
    assert_eq!(of_16("a09c4010"), (40_000, true, 0, true, (0, vec![]), 1));
    assert_eq!(of_16("ca9c40012c10"), (40_000, false, 300, true, (1, vec![]), 1));
}

#[test]
fn status_pdus_are_decoded() {
    let of_10 = |text| status(Generation::Lte(10), text);
    assert_eq!(of_10("0020"), (8, vec![]));
    assert_eq!(of_10("002203403a000ffff8"), (8, vec![(6, 1, 0, None), (7, 1, 3, None)]));
    assert_eq!(of_10("0022032001000480"), (8, vec![(6, 1, 4, Some(9))]));
    let of_16 = status(Generation::Lte(16), "09c42ce2060259ffff388200");
    assert_eq!(of_16, (40_002, vec![(40_000, 1, 300, None), (40_001, 1, 0, None)]));
    assert_eq!(status(Generation::Nr(12), "000700"), (7, vec![]));
    let of_12 = status(Generation::Nr(12), "00648005a805bc000a001305da0406260005ffff02");
    let nacks = vec![(90, 1, 0, None), (91, 1, 10, Some(19)), (93, 4, 0, None), (98, 2, 5, None)];
    assert_eq!(of_12, (100, nacks));
    let of_18 = status(Generation::Nr(18), "0c352ac35070000a03e7c350c803");
    assert_eq!(of_18, (200_010, vec![(200_001, 1, 10, Some(999)), (200_003, 3, 0, None)]));
}

#[test]
fn malformed_pdus_are_refused() {
    for (generation, text) in [
        (Generation::Nr(12), ""),
        (Generation::Nr(12), "c005"),
        (Generation::Nr(12), "b006000010"),
        (Generation::Nr(12), "100700"),
        (Generation::Nr(12), "000701"),
        (Generation::Nr(12), "00070000"),
        (Generation::Nr(12), "0064805a2000"),
        (Generation::Nr(18), "c70d4010"),
        (Generation::Lte(10), "8c06000010"),
        (Generation::Lte(10), "8c0600401011"),
        (Generation::Lte(10), "0021"),
    ] {
        assert!(decode(generation, &hex(text)).is_err(), "{text}");
    }
}
