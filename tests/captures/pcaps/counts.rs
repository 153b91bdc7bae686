//! What was sent again, out of order, or acknowledged twice: tshark and tcptrace count what we count.

use std::collections::BTreeMap;

use super::tools::*;

/// Tools that see a packet for the first time take it for overtaken, we for sent again if an earlier copy was lost
/// before it came here: by its timestamp, or because a round trip has passed. All of them are full.
fn lost_before(name: &str) -> (u64, u64) {
    let lost = count(&sender(name), "/retransmissions/lost_before_capture");
    (lost, lost * count(&sender(name), "/sender/longest_segment_bytes"))
}

#[test]
fn tcptrace_counts_the_same_sent_again_and_out_of_order() {
    // SYN and FIN are octets to it, and data: what was sent again with them has one more each time.
    const OCTETS: [(&str, i64); 5] =
        [("fast-timeout", 1), ("rebate", 1), ("receiver", 1), ("reset", 2), ("sack", 1)];
    for name in names() {
        let (ours, theirs) = (sender(&name), tcptrace(&name));
        let of = |pointer: &str| count(&ours, pointer);
        let (lost, lost_octets) = lost_before(&name);
        let packets = of("/retransmissions/packets") + of("/retransmissions/syns") - lost;
        assert_eq!(theirs.figure::<u64>("rexmt data pkts"), packets, "{name}: packets sent again");
        let octets = of("/retransmissions/bytes") - lost_octets;
        let more = known(&OCTETS, &name);
        assert_eq!(
            theirs.figure::<i64>("rexmt data bytes") - octets as i64,
            more,
            "{name}: octets sent again"
        );
        let late = of("/arrivals/out_of_order") + lost;
        assert_eq!(theirs.figure::<u64>("outoforder pkts"), late, "{name}: out of order");
    }
}

/// A copy of a segment is a retransmission to tshark if its round trip permits, else out of order: both together are
/// what we have as sent again and as out of order.
pub(super) fn tshark_counts_the_same_packets_sent_again_and_out_of_order(name: &str, theirs: &[Dissected]) {
    let data: Vec<_> = theirs.iter().filter(|packet| packet.is_forth && packet.len > Some(0)).collect();
    let again =
        data.iter().filter(|it| !(it.retransmission.is_empty() && it.out_of_order.is_empty())).count();
    let ours = sender(name);
    assert_eq!(count(&ours, "/data_packets"), data.len() as u64, "{name}: data packets");
    let late = count(&ours, "/retransmissions/packets") + count(&ours, "/arrivals/out_of_order");
    assert_eq!(late, again as u64, "{name}: sent again, or out of order");
}

pub(super) fn tshark_counts_the_same_duplicate_acks(name: &str, theirs: &[Dissected]) {
    const DIFFERENT: [(&str, i64); 3] = [
        // When everything is acknowledged, late copies of the data still make the receiver send ACKs. With nothing
        // outstanding these are no duplicate ACKs (RFC 5681 §2 (a)).
        ("newreno", 5),
        ("sack", 2),
        // All of them have SACK blocks. It looks no further at a packet whose options are cut.
        ("short", -39),
    ];
    let theirs = theirs.iter().filter(|it| !it.is_forth && !it.duplicate_ack.is_empty()).count() as i64;
    let ours = count(&sender(name), "/acks/duplicate") as i64;
    assert_eq!(theirs - ours, known(&DIFFERENT, name), "{name}: {theirs}, ours {ours}");
}

#[test]
fn tcptrace_counts_the_same_duplicate_acks() {
    // A SYN-ACK that comes again, and a FIN behind the ACK for the last data, count as well; and so do ACKs when nothing
    // is outstanding.
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
    // Those five; those two, and the FIN.
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
        assert_eq!(more, known(&THRICE, &name), "{name}: three or more, ours {thrice}");
    }
}
