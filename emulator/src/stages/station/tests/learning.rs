//! A station joins in mid-connection: after a handover, after a restart, or because its table was full.

use super::*;
use crate::scenario::settings;

/// Returns settings for at most twenty segments in flight.
fn short_flights(radio: Side) -> StationConfig {
    StationConfig { max_flight: Size::bytes(u64::from(20 * SIZE)), ..marks(radio) }
}

/// Sends these segments, and retransmits each one that an ACK asks for. Returns the reported cause for each
/// hole, in order.
fn transfer(connection: &mut Connection, segments: std::ops::Range<u32>) -> Vec<(u32, Cause)> {
    segments.flat_map(|index| connection.send_and_repair(index)).collect()
}

/// Sends four segments over a station that saw the SYN, and the rest over one that did not.
fn transfer_across_handover(
    before: Net,
    after: Net,
    sender: Port,
    rest: u32,
) -> (Connection, Vec<(u32, Cause)>) {
    let mut connection = Connection::open(before, Ip::V4, sender, ISN);
    assert_eq!(transfer(&mut connection, 0..4), []);
    connection.net = after;
    let verdicts = transfer(&mut connection, 4..rest);
    assert_eq!(connection.rcv_nxt, u64::from(rest), "all segments have arrived");
    (connection, verdicts)
}

#[test]
fn new_station_marks_data_to_mobile_immediately() {
    use Cause::{Congestion, Radio};
    let after = one_station(FIXED, &[seq(8), seq(20)], &[seq(10), seq(30), seq(31)]);
    let (connection, verdicts) = transfer_across_handover(one_station(FIXED, &[], &[]), after, FIXED, 40);
    assert_eq!(verdicts, [(8, Congestion), (10, Radio), (20, Congestion), (30, Radio), (31, Radio)]);
    assert_eq!(connection.net.stats()["station"]["transit"]["learned_without_handshake"], 1);
}

#[test]
fn new_station_marks_mobile_data_after_one_flight() {
    use Cause::{Congestion, Radio};
    let after = one_station_of(
        &short_flights(Side::Mobile),
        MOBILE,
        &[seq(8), seq(50), seq(70)],
        &[seq(10), seq(45), seq(60), seq(61)],
    );
    let (_, verdicts) = transfer_across_handover(one_station(MOBILE, &[], &[]), after, MOBILE, 80);
    assert_eq!(
        verdicts,
        [
            (8, Congestion),
            // Lost on the radio link, but within one flight of the point where the station joined.
            (10, Congestion),
            (45, Radio),
            (50, Congestion),
            (60, Radio),
            (61, Radio),
            (70, Congestion)
        ]
    );
}

/// Segments 4 to 7 pass the old station and are then lost to congestion. After that the mobile moves, and the
/// first segments at the new station are later ones.
#[test]
fn wire_loss_before_handover_is_judged_congestion() {
    for config in [marks(Side::Mobile), short_flights(Side::Mobile)] {
        let lost: Vec<u32> = (4..8).map(seq).collect();
        let mut connection = Connection::open(one_station(MOBILE, &lost, &[]), Ip::V4, MOBILE, ISN);
        connection.send(0..8);
        connection.net = one_station_of(&config, MOBILE, &[], &[]);
        for index in 8..20 {
            let (missing, flags) = connection.data(index).unwrap();
            assert_eq!((missing, connection.cause(flags)), (4, Cause::Congestion));
        }
        for hole in 4..8 {
            assert_eq!(connection.verdict(), (hole, Cause::Congestion));
            connection.data(hole);
        }
        assert_eq!(connection.ack().0, 20);
    }
}

#[test]
fn mobile_to_mobile_verdicts_survive_new_stations() {
    use Cause::{Congestion, Radio};
    for new in [[true, false], [false, true], [true, true]] {
        for sender in [FIXED, MOBILE] {
            let mut stations = [Side::Fixed, Side::Mobile].map(|side| Station::new(&short_flights(side)));
            let mut connection = Connection::open(Net::of(Vec::new()), Ip::V4, sender, ISN);
            // Pass the handshake and four segments through both stations.
            let pass = |stations: &mut [Station; 2], tcp: Tcp| {
                let order = if tcp.from == FIXED { [0, 1] } else { [1, 0] };
                let mut bytes = tcp.packet();
                for index in order {
                    let mut out = Outbox::new(Recording::Off, false);
                    let packet = packet(0, tcp.direction(), Instant::ZERO, bytes.clone());
                    stations[index].handle_packet(Instant::ZERO, packet, &mut out);
                    bytes = out.take().remove(0).bytes.clone();
                }
                read(&bytes).0.header().flags.0
            };
            let receiver = other(sender);
            pass(&mut stations, Tcp::new(Ip::V4, sender, SYN, ISN, 0));
            let flags = pass(&mut stations, Tcp::new(Ip::V4, receiver, SYN | ACK, PEER, seq(0)));
            connection.radio_path = RadioPath::announced(flags);
            assert_eq!(connection.radio_path, Some(RadioPath::MobileToMobile));
            for index in 0..4 {
                pass(&mut stations, Tcp::data(sender, index));
                pass(&mut stations, Tcp::new(Ip::V4, receiver, ACK, PEER + 1, seq(index + 1)));
                connection.arrive(index.into());
            }
            for (station, (new, side)) in
                stations.iter_mut().zip(new.into_iter().zip([Side::Fixed, Side::Mobile]))
            {
                if new {
                    *station = Station::new(&short_flights(side));
                }
            }
            // First radio link, wire, second radio link, in the order in which the data crosses them.
            let mut lose: [&[u32]; 3] = [&[seq(40), seq(50)], &[seq(42)], &[seq(45), seq(55)]];
            if sender == MOBILE {
                lose.reverse();
            }
            connection.net = two_stations_of(stations, sender, lose);
            let verdicts = transfer(&mut connection, 4..60);
            assert_eq!(
                verdicts,
                [(40, Radio), (42, Congestion), (45, Radio), (50, Radio), (55, Radio)],
                "{new:?} {sender:?}"
            );
        }
    }
}

#[test]
fn evicted_connection_is_learned_again() {
    let one = StationConfig { max_flows: NonZeroU32::new(1).unwrap(), ..marks(Side::Mobile) };
    let net = one_station_of(&one, FIXED, &[seq(20)], &[seq(2), seq(10), seq(22)]);
    let mut connection = Connection::open(net, Ip::V4, FIXED, ISN);
    assert_eq!(transfer(&mut connection, 0..6), [(2, Cause::Radio)]);
    connection.net = another_connection(connection.net);
    assert_eq!(connection.net.stats()["station"]["flows"]["evicted"], 1);
    let verdicts = transfer(&mut connection, 6..30);
    assert_eq!(verdicts, [(10, Cause::Radio), (20, Cause::Congestion), (22, Cause::Radio)]);
}

/// The other direction takes a path without a station.
#[test]
fn one_direction_alone_is_not_learned() {
    for sender in [FIXED, MOBILE] {
        let mut net = Net::station(&marks(Side::Mobile));
        for index in 0..50 {
            net.pass(&Tcp::data(sender, index));
        }
        let stats = net.stats();
        let stats = &stats["station"];
        assert_eq!(
            (&stats["transit"]["learned_without_handshake"], &stats["flows"]["remembered"]),
            (&json!(0), &json!(0))
        );
        assert_eq!(stats["flows"]["opening"], 1);
    }
}

#[test]
fn burst_before_first_ack_is_remembered() {
    let mut connection = Connection::under_way(one_station(FIXED, &[], &[seq(3)]), Ip::V4, FIXED, ISN);
    connection.radio_path = Some(RadioPath::FixedToMobile);
    for index in 0..8 {
        let data = Tcp::data(FIXED, index);
        connection.net.pass(&data);
    }
    connection.rcv_nxt = 3;
    assert_eq!(
        connection.verdict().1,
        Cause::Radio,
        "segment 3 passed before the station learned the connection"
    );
}

#[test]
fn handover_resets_station_state() {
    let handover: Times = settings("at = [\"10s\", \"20s\"]").unwrap();
    let mut station = Station::new(&StationConfig { handover: Some(handover), ..marks(Side::Mobile) });
    let mut send = |second: u64, tcp: &Tcp| {
        let mut out = Outbox::new(Recording::Off, false);
        let now = Instant::from_secs(second);
        station.handle_packet(now, packet(0, tcp.direction(), now, tcp.packet()), &mut out);
        (read(&out.take()[0].bytes).0.header().flags.0, station.stats())
    };
    send(1, &Tcp::new(Ip::V4, FIXED, SYN, ISN, 0));
    send(1, &Tcp::new(Ip::V4, MOBILE, SYN | ACK, PEER, seq(0)));
    let data = |index| Tcp::data(FIXED, index);
    let ack = |index| Tcp::new(Ip::V4, MOBILE, ACK, PEER + 1, seq(index));
    send(2, &data(0));
    assert_eq!(send(9, &ack(0)).0 & (OB | DB), OB);
    let (flags, stats) = send(10, &ack(0));
    assert_eq!(
        (flags & (OB | DB), &stats["handovers"]),
        (0, &json!(1)),
        "the segment passed the previous station"
    );
    send(11, &data(1));
    let (flags, stats) = send(12, &ack(1));
    assert_eq!((flags & OB, &stats["transit"]["learned_without_handshake"]), (OB, &json!(1)));
    let (flags, stats) = send(30, &ack(1));
    assert_eq!((flags & (OB | DB), &stats["handovers"]), (0, &json!(2)));
}
