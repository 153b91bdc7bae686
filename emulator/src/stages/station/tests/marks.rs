//! Tests of the marks, and of the causes that a sender derives from the marks.

use super::*;

#[test]
fn ob_distinguishes_wire_and_radio_losses() {
    for (sender, radio_path, [wire_bits, radio_bits]) in
        [(FIXED, RadioPath::FixedToMobile, [0, OB]), (MOBILE, RadioPath::MobileToFixed, [OB, 0])]
    {
        for ip in [Ip::V4, Ip::V6] {
            let on_wire = duplicates(one_station(sender, &[seq(1)], &[]), ip, sender);
            assert_eq!(on_wire, (Some(radio_path), wire_bits), "{ip:?} {radio_path:?}");
            let on_radio = duplicates(one_station(sender, &[], &[seq(1)]), ip, sender);
            assert_eq!(on_radio, (Some(radio_path), radio_bits), "{ip:?} {radio_path:?}");
        }
    }
}

#[test]
fn two_bits_distinguish_three_mobile_to_mobile_cases() {
    for ip in [Ip::V4, Ip::V6] {
        for (case, bits) in [(0, 0), (1, OB), (2, OB | DB)] {
            // The lost segments, in the order in which the data crosses the links.
            let mut lose: [&[u32]; 3] = [&[seq(1)], &[], &[]];
            lose.rotate_right(case);
            for sender in [FIXED, MOBILE] {
                let expected = (Some(RadioPath::MobileToMobile), bits);
                assert_eq!(duplicates(two_stations(sender, lose), ip, sender), expected, "case {}", case + 1);
                lose.reverse();
            }
        }
    }
}

#[test]
fn sender_interprets_marks_as_in_paper() {
    use Cause::{Congestion, Radio};
    let both = OB | DB;
    for (radio_path, flags, cause) in [
        (RadioPath::FixedToMobile, OB, Radio),
        (RadioPath::FixedToMobile, 0, Congestion),
        (RadioPath::MobileToFixed, OB, Congestion),
        (RadioPath::MobileToFixed, 0, Radio),
        (RadioPath::MobileToMobile, 0, Radio),
        (RadioPath::MobileToMobile, OB, Congestion),
        (RadioPath::MobileToMobile, both, Radio),
        (RadioPath::MobileToMobile, DB, Congestion),
    ] {
        assert_eq!(radio_path.cause(flags | ACK), cause, "{radio_path:?} {flags:x}");
    }
}

#[test]
fn verdicts_on_many_losses_match_ground_truth() {
    // Segments 1, 4, 7, … are lost on the first link, 2, 5, 8, … on the second, 3, 6, 9, … on the third.
    let [first, second, third] = [1, 2, 3].map(|from| (from..100).step_by(3).map(seq).collect::<Vec<_>>());
    let (radio, queue) = (Cause::Radio, Cause::Congestion);
    let mut cases = Vec::new();
    for sender in [FIXED, MOBILE] {
        let causes = vec![(&first, queue), (&second, radio)];
        cases.push((one_station(sender, &first, &second), sender, causes));
        let causes = vec![(&first, radio), (&second, queue), (&third, radio)];
        cases.push((two_stations(sender, [&first, &second, &third]), sender, causes));
    }
    for (net, sender, causes) in cases {
        let mut connection = Connection::open(net, Ip::V4, sender, ISN);
        connection.send(0..101);
        // Each segment was lost once. Now the receiver asks for each hole, and each is filled after the verdict.
        let mut verdicts = 0;
        while connection.rcv_nxt < 101 {
            let (missing, flags) = connection.ack();
            let truth = causes.iter().find(|(lost, _)| lost.contains(&seq(missing))).map(|(_, cause)| *cause);
            assert_eq!(Some(connection.cause(flags)), truth, "segment {missing}, sender {sender:?}");
            verdicts += 1;
            connection.data(missing).expect("the retransmission arrives");
        }
        assert_eq!(verdicts, causes.iter().map(|(lost, _)| lost.len()).sum::<usize>());
    }
}

#[test]
fn marks_are_correct_across_sequence_wrap() {
    let isn = u32::MAX - 150;
    let lost = isn.wrapping_add(1).wrapping_add(SIZE);
    let mut connection = Connection::open(one_station(FIXED, &[lost], &[]), Ip::V4, FIXED, isn);
    connection.data(0);
    assert_eq!(connection.data(1), None);
    let (missing, flags) = connection.data(2).unwrap();
    assert_eq!((missing, flags & OB), (1, 0));
    connection.data(1);
    let (missing, flags) = connection.ack();
    assert_eq!((missing, flags & OB), (3, 0), "segment 3 has not been sent");
}

#[test]
fn lost_acks_and_reordering_do_not_change_marks() {
    let mut connection = Connection::open(one_station(FIXED, &[seq(3)], &[]), Ip::V6, FIXED, ISN);
    for index in [2, 0, 1, 5, 4] {
        // No ACK for these segments reaches the station.
        let rcv_nxt = connection.rcv_nxt;
        let data = Tcp::new(Ip::V6, FIXED, PSH_ACK, connection.seq(index), PEER + 1).payload(&[0; 100]);
        connection.net.pass(&data);
        assert_eq!(connection.rcv_nxt, rcv_nxt);
    }
    connection.arrived = [0, 1, 2, 4, 5].into();
    connection.rcv_nxt = 2;
    assert_eq!(connection.ack().1 & OB, OB, "an old ACK asks for data that passed the station");
    connection.rcv_nxt = 3;
    assert_eq!(connection.ack().1 & OB, 0, "segment 3 has not passed the station");
    connection.rcv_nxt = 2;
    assert_eq!(connection.ack().1 & OB, OB, "a reordered ACK");
}

#[test]
fn fin_counts_as_one_sequence_number() {
    let mut connection = Connection::open(one_station(FIXED, &[], &[]), Ip::V4, FIXED, ISN);
    connection.data(0);
    let fin = Tcp::new(Ip::V4, FIXED, FIN | ACK, seq(1), PEER + 1);
    assert_eq!(connection.ack().1 & OB, 0);
    connection.net.pass(&fin);
    assert_eq!(connection.ack().1 & OB, OB, "the ACK asks for the FIN, which passed the station");
}

#[test]
fn keep_alive_does_not_count_as_data() {
    let mut connection = Connection::open(one_station(FIXED, &[], &[]), Ip::V4, FIXED, ISN);
    connection.data(0);
    for payload in [&[][..], &[0]] {
        let probe = Tcp::new(Ip::V4, FIXED, ACK, seq(1) - 1, PEER + 1).payload(payload);
        connection.net.pass(&probe);
        assert_eq!(connection.ack().1 & (OB | DB), 0);
    }
    assert_eq!(connection.net.stats()["station"]["transit"]["bypassed"], 0);
}

#[test]
fn port_reuse_starts_new_connection() {
    let mut connection = Connection::open(one_station(FIXED, &[], &[]), Ip::V4, FIXED, ISN);
    connection.send(0..20);
    connection.isn = ISN + 1000;
    connection.rcv_nxt = 0;
    connection.arrived.clear();
    connection.handshake();
    assert_eq!(connection.ack().1 & OB, 0, "data of the old connection does not count");
    assert_eq!(connection.data(0).map(|(missing, flags)| (missing, flags & OB)), Some((1, 0)));
}

#[test]
fn old_syn_does_not_reset_connection() {
    let mut connection = Connection::open(one_station(FIXED, &[seq(1)], &[seq(4)]), Ip::V4, FIXED, ISN);
    connection.data(0);
    connection.data(1);
    connection.net.pass(&Tcp::new(Ip::V4, FIXED, SYN, 0x5000_0000, 0));
    assert_eq!(connection.data(2).unwrap().1 & OB, 0);
    connection.data(3);
    connection.data(4);
    connection.data(1);
    assert_eq!(connection.ack(), (4, ACK | OB));
}

#[test]
fn unknown_connection_is_judged_congestion() {
    let cause = |radio, sender: Port, radio_path: RadioPath| {
        let mut net = Net::station(&marks(radio));
        net.pass(&Tcp::new(Ip::V4, sender, PSH_ACK, 500, 1).payload(&[0; 100]));
        radio_path.cause(net.flags(&Tcp::new(Ip::V4, other(sender), ACK | OB | DB, 1, 400)))
    };
    assert_eq!(cause(Side::Mobile, FIXED, RadioPath::FixedToMobile), Cause::Congestion);
    assert_eq!(cause(Side::Mobile, MOBILE, RadioPath::MobileToFixed), Cause::Congestion);
}

#[test]
fn evicted_connection_is_judged_congestion() {
    let few = |radio| StationConfig { max_flows: NonZeroU32::new(1).unwrap(), ..marks(radio) };
    for forgetful in [0, 1] {
        for sender in [FIXED, MOBILE] {
            let config = |index, side| if index == forgetful { few(side) } else { marks(side) };
            // The segment is lost on the wire, between the two stations.
            let net = Net::of(vec![
                named("station1", Station::new(&config(0, Side::Fixed))),
                named("wire", hole(sender, &[seq(1)], DropReason::QueueFull)),
                named("station2", Station::new(&config(1, Side::Mobile))),
            ]);
            let mut connection = Connection::open(net, Ip::V4, sender, ISN);
            connection.send(0..4);
            assert_eq!(connection.verdict().1, Cause::Congestion);
            // Another connection displaces this one from the table.
            connection.net = another_connection(connection.net);
            assert_eq!(connection.verdict().1, Cause::Congestion, "{forgetful} {sender:?}");
        }
    }
}

#[test]
fn mark_bits_set_by_hosts_are_cleared() {
    let mut connection = Connection::open(one_station(FIXED, &[], &[]), Ip::V4, FIXED, ISN);
    let from_mobile = Tcp::new(Ip::V4, MOBILE, ACK | OB | DB, PEER + 1, seq(0));
    assert_eq!(connection.net.flags(&from_mobile), ACK);
    let from_fixed = Tcp::new(Ip::V4, FIXED, ACK | DB, seq(0), PEER + 1);
    assert_eq!(connection.net.flags(&from_fixed), ACK);
    let syn = Tcp::new(Ip::V4, MOBILE, SYN | OB, 5, 0).port(1);
    assert_eq!(connection.net.flags(&syn), SYN | DB, "no station serves the fixed host");
    // The station leaves the third reserved bit and the ECN bits alone.
    let others = Tcp::new(Ip::V4, MOBILE, ACK | 0x200 | 0x1c0, PEER + 1, seq(0));
    assert_eq!(connection.net.flags(&others), ACK | 0x200 | 0x1c0);
}

#[test]
fn disabled_marks_leave_flags_unchanged() {
    let mut net = Net::station(&StationConfig::default());
    for flags in [SYN, SYN | ACK, ACK, ACK | OB | DB, RST] {
        let tcp = Tcp::new(Ip::V4, MOBILE, flags, 1, 1);
        assert_eq!(net.send(MOBILE, &tcp.packet()), Some(tcp.packet()));
    }
}

#[test]
fn marks_are_recorded_as_events() {
    let mut connection = Connection::open(one_station(FIXED, &[], &[]), Ip::V4, FIXED, ISN);
    connection.data(0);
    let records = connection.net.0.take_records();
    let marks: Vec<_> = records
        .iter()
        .filter_map(|Record { stage, event, .. }| match event {
            Event::Marked { mark } => Some((*stage, *mark)),
            _ => None,
        })
        .collect();
    let unseen = (Some(1), Mark::Transit { ob: false, db: false });
    let announced = (Some(1), Mark::Announced);
    // SYN, SYN-ACK, ACK, data (which also acknowledges), ACK. Segments to the mobile report on data from the
    // mobile, which has not sent any.
    assert_eq!(marks, [announced, announced, unseen, unseen, unseen]);
}
