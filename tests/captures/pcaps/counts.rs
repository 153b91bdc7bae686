//! Counts of retransmissions, out-of-order packets and duplicate ACKs, compared with tshark and tcptrace.

use std::collections::BTreeMap;

use super::tools::*;

/// Retransmissions whose first copy was lost before the capture point, as packets and bytes. The tools count
/// these packets as out of order. We recognise them by their timestamps, or because a round trip has passed.
/// All are full-sized.
fn lost_before(name: &str) -> (u64, u64) {
    let lost = count(&sender(name), "/retransmissions/lost_before_capture");
    (lost, lost * count(&sender(name), "/sender/longest_segment_bytes"))
}

#[test]
fn retransmissions_and_reordering_match_tcptrace() {
    // tcptrace counts SYN and FIN as a byte of data each, so a retransmission of a SYN or FIN has one byte
    // more.
    const OCTETS: [(&str, i64); 5] =
        [("fast-timeout", 1), ("rebate", 1), ("receiver", 1), ("reset", 2), ("sack", 1)];
    for name in names() {
        let (ours, theirs) = (sender(&name), tcptrace(&name));
        let of = |pointer: &str| count(&ours, pointer);
        let (lost, lost_octets) = lost_before(&name);
        let packets = of("/retransmissions/packets") + of("/retransmissions/syns") - lost;
        assert_eq!(theirs.figure::<u64>("rexmt data pkts"), packets, "{name}: retransmitted packets");
        let octets = of("/retransmissions/bytes") - lost_octets;
        let more = known(&OCTETS, &name);
        assert_eq!(
            theirs.figure::<i64>("rexmt data bytes") - octets as i64,
            more,
            "{name}: retransmitted bytes"
        );
        let late = of("/arrivals/out_of_order") + lost;
        assert_eq!(theirs.figure::<u64>("outoforder pkts"), late, "{name}: out of order");
    }
}

/// tshark counts a copy as a retransmission if the RTT permits that, and as out of order otherwise. So only
/// the sum of both can be compared with our numbers.
pub(super) fn check_retransmissions_match_tshark(name: &str, theirs: &[Dissected]) {
    let data: Vec<_> =
        theirs.iter().filter(|packet| packet.is_from_sender && packet.payload_len() > Some(0)).collect();
    let again = data
        .iter()
        .filter(|it| it.has("tcp.analysis.retransmission") || it.has("tcp.analysis.out_of_order"))
        .count();
    let ours = sender(name);
    assert_eq!(count(&ours, "/data_packets"), data.len() as u64, "{name}: data packets");
    let late = count(&ours, "/retransmissions/packets") + count(&ours, "/arrivals/out_of_order");
    assert_eq!(late, again as u64, "{name}: retransmitted or out of order");
}

pub(super) fn check_duplicate_acks_match_tshark(name: &str, theirs: &[Dissected]) {
    const DIFFERENT: [(&str, i64); 3] = [
        // After everything is acknowledged, late copies of the data still cause ACKs. Without outstanding
        // data they are not duplicate ACKs (RFC 5681 §2 (a)).
        ("newreno", 5),
        ("sack", 2),
        // The ACKs of this capture have SACK blocks. tshark does not analyse packets with truncated options.
        ("short", -39),
    ];
    let theirs =
        theirs.iter().filter(|it| !it.is_from_sender && it.has("tcp.analysis.duplicate_ack")).count() as i64;
    let ours = count(&sender(name), "/acks/duplicate") as i64;
    assert_eq!(
        theirs - ours,
        known(&DIFFERENT, name),
        "{name}: duplicate ACKs: tshark {theirs}, ours {ours}"
    );
}

#[test]
fn duplicate_acks_match_tcptrace() {
    // tcptrace also counts a repeated SYN-ACK, a FIN after the ACK of the last data, and ACKs without
    // outstanding data.
    const DIFFERENT: [(&str, i64); 8] = [
        ("bbr", 1),
        ("eifel", 1),
        ("fast-timeout", 2),
        ("handover", 1),
        ("ipv6", 1),
        ("newreno", 6),
        ("reset", 1),
        ("sack", 3),
    ];
    // The five ACKs without outstanding data in `newreno`, and two such ACKs and the FIN in `sack`.
    const THRICE: [(&str, i64); 2] = [("newreno", 1), ("sack", 1)];
    for name in names() {
        let theirs = tcptrace(&name);
        let ours = count(&sender(&name), "/acks/duplicate") as i64;
        let more = theirs.figure::<i64>("duplicate acks") - ours;
        assert_eq!(more, known(&DIFFERENT, &name), "{name}: duplicate ACKs, ours {ours}");
        let mut repeated = BTreeMap::new();
        for ack in trace(&name).acks.iter().filter(|ack| ack.duplicate) {
            *repeated.entry(ack.ack).or_insert(0) += 1;
        }
        let thrice = repeated.values().filter(|times| **times >= 3).count() as i64;
        let more = theirs.figure::<i64>("triple dupacks") - thrice;
        assert_eq!(more, known(&THRICE, &name), "{name}: three or more duplicate ACKs, ours {thrice}");
    }
}
