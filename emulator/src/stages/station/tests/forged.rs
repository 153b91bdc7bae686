//! An off-path attacker forges segments of a connection.

use airtcp_testkit::sample::{cases, size};
use proptest::prelude::*;

use super::*;

/// Distances from the current numbers that no genuine segment of a [`Connection`] reaches.
const FAR: [u32; 5] = [2_000_000, 1 << 28, 1 << 29, 1 << 30, 1 << 31];

/// Returns forged segments of all kinds with these numbers.
fn forgeries(from: Port, seq: u32, ack: u32) -> Vec<Tcp> {
    let bare = [ACK, RST, RST | ACK, FIN | ACK, SYN, SYN | ACK, FIN, 0];
    let mut all: Vec<Tcp> = bare.map(|flags| Tcp::new(Ip::V4, from, flags, seq, ack)).into();
    all.push(Tcp::new(Ip::V4, from, PSH_ACK, seq, ack).payload(&[9; SIZE as usize]));
    all
}

#[test]
fn ack_far_ahead_does_not_disable_marks() {
    for ahead in [9, 100, 5000].map(|segments| segments * SIZE).into_iter().chain(FAR) {
        let mut connection = Connection::open(one_station(MOBILE, &[seq(4)], &[seq(1)]), Ip::V4, MOBILE, ISN);
        connection.data(0);
        connection.data(1);
        assert_eq!(connection.data(2).unwrap().1 & OB, 0, "segment 1 was lost on the radio link");
        let forged = Tcp::new(Ip::V4, FIXED, ACK, PEER + 1, seq(1).wrapping_add(ahead));
        let flags = connection.net.flags(&forged);
        assert_eq!(
            connection.cause(flags),
            Cause::Congestion,
            "the station does not know the requested data"
        );
        assert_eq!(connection.verdict(), (1, Cause::Radio), "{ahead} ahead");
        connection.send([1, 3, 4, 5]);
        assert_eq!(connection.verdict(), (4, Cause::Congestion), "{ahead} ahead");
    }
}

#[test]
fn forged_segments_with_distant_numbers_change_nothing() {
    use Cause::{Congestion, Radio};
    for (sender, forger) in [(FIXED, FIXED), (FIXED, MOBILE), (MOBILE, FIXED), (MOBILE, MOBILE)] {
        let net = one_station(sender, &[seq(3)], &[seq(5)]);
        let mut connection = Connection::open(net, Ip::V4, sender, ISN);
        let mut verdicts = Vec::new();
        for index in 0..8 {
            // A forged segment that the station accepted would move its numbers, and the next larger distance
            // would then be within its reach.
            for step in 1..=8_u32 {
                for far in FAR.map(|far| far.wrapping_mul(step)).into_iter().filter(|far| *far != 0) {
                    let here = seq(index).wrapping_add(far);
                    let (own, peers) = if forger == sender { (here, PEER + 1) } else { (PEER + 1, here) };
                    for tcp in forgeries(forger, own, peers) {
                        connection.net.pass(&tcp);
                    }
                }
            }
            verdicts.extend(connection.send_and_repair(index));
        }
        assert_eq!(verdicts, [(3, Congestion), (5, Radio)], "{sender:?}, forged by {forger:?}");
        assert_eq!(connection.rcv_nxt, 8);
        assert_eq!(
            connection.net.stats()["station"]["transit"]["learned_without_handshake"],
            0,
            "the station never lost the connection"
        );
    }
}

#[test]
fn syn_burst_evicts_no_live_connection() {
    let few = StationConfig { max_flows: NonZeroU32::new(4).unwrap(), ..marks(Side::Mobile) };
    let net = one_station_of(&few, MOBILE, &[seq(2)], &[seq(4)]);
    let mut connection = Connection::open(net, Ip::V4, MOBILE, ISN);
    connection.data(0);
    for port in 10_000..11_000 {
        for from in [FIXED, MOBILE] {
            connection.net.pass(&Tcp::new(Ip::V4, from, SYN, u32::from(port), 0).port(port));
            connection.net.pass(&Tcp::new(Ip::V4, from, PSH_ACK, 7, 7).payload(&[0; 9]).port(port + 20_000));
        }
    }
    connection.send(1..4);
    assert_eq!(connection.verdict(), (2, Cause::Congestion));
    connection.send([2, 4, 5]);
    assert_eq!(connection.verdict(), (4, Cause::Radio));
    let stats = connection.net.stats();
    let flows = &stats["station"]["flows"];
    assert_eq!((&flows["remembered"], &flows["evicted"]), (&json!(1), &json!(0)));
    assert!(flows["opening"].as_u64().unwrap() <= 1, "{flows}");
}

/// The attacker sends in one direction only, as a host outside the cell can.
#[test]
fn one_sided_forgeries_are_not_learned() {
    let mut net = Net::station(&marks(Side::Mobile));
    for number in 0..1000_u32 {
        for tcp in forgeries(FIXED, number.wrapping_mul(7_919_777), number.wrapping_mul(104_729_333)) {
            net.pass(&tcp);
        }
    }
    assert_eq!(net.stats()["station"]["transit"]["learned_without_handshake"], 0);
    // The attacker does not keep the station from learning the connection either.
    let data = |index| Tcp::data(MOBILE, index);
    net.pass(&data(0));
    for tcp in forgeries(FIXED, 0x3333_3333, 0x5555_5555) {
        net.pass(&tcp);
    }
    net.pass(&Tcp::new(Ip::V4, FIXED, ACK, PEER + 1, seq(1)));
    assert_eq!(net.stats()["station"]["transit"]["learned_without_handshake"], 1);
}

/// Outcome of a data segment: it arrives, or is lost before or after the station.
#[derive(Clone, Copy, Debug)]
enum Delivery {
    Arrives,
    LostBefore,
    LostAfter,
}

#[derive(Clone, Debug)]
enum Step {
    /// Send the next data segment.
    Send(Delivery),
    /// Retransmit the missing segment.
    Resend(Delivery),
    /// The receiver asks for the missing segment.
    Ack,
    /// A new station, which knows nothing, replaces the current one.
    Handover,
    /// Forge a segment with numbers at these distances from the genuine ones.
    Forge {
        from_sender: bool,
        index: usize,
        seq: u32,
        ack: u32,
    },
    Syn {
        port: u16,
        isn: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let delivery = || prop_oneof![5 => Just(Delivery::Arrives), 1 => Just(Delivery::LostBefore), 1 => Just(Delivery::LostAfter)];
    // Include distances just beyond the reach, which random numbers rarely hit.
    let far = || {
        prop_oneof![
            Just(0),
            any::<u32>(),
            prop::sample::select(FAR.to_vec()),
            4000_u32..9000,
            (4000_u32..9000).prop_map(u32::wrapping_neg),
        ]
    };
    prop_oneof![
        12 => delivery().prop_map(Step::Send),
        4 => delivery().prop_map(Step::Resend),
        12 => Just(Step::Ack),
        1 => Just(Step::Handover),
        6 => (any::<bool>(), 0_usize..9, far(), far())
            .prop_map(|(from_sender, index, seq, ack)| Step::Forge { from_sender, index, seq, ack }),
        1 => (5001_u16..5050, any::<u32>()).prop_map(|(port, isn)| Step::Syn { port, isn }),
    ]
}

/// Maximum number of segments in flight.
const WINDOW: u64 = 10;

proptest! {
    #![proptest_config(cases(size(80, 256)))]

    /// For data to the radio link, "radio" means that the byte passed a station. For data from the radio
    /// link, it means that the byte did not pass any station.
    #[test]
    fn radio_verdict_is_given_only_for_radio_losses(
        from_mobile: bool,
        isn: u32,
        station_sees_syn: bool,
        steps in prop::collection::vec(step(), 0..400),
    ) {
        let config = StationConfig {
            max_flows: NonZeroU32::new(2).unwrap(),
            max_flight: Size::bytes(WINDOW * u64::from(SIZE)),
            ..marks(Side::Mobile)
        };
        let (sender, path) =
            if from_mobile { (MOBILE, RadioPath::MobileToFixed) } else { (FIXED, RadioPath::FixedToMobile) };
        let mut connection = Connection::under_way(Net::station(&config), Ip::V4, sender, isn);
        if station_sees_syn {
            connection.handshake();
        }
        connection.radio_path = Some(path);
        let mut next = 0;
        // Segments that have passed this station or a previous one.
        let mut passed = BTreeSet::new();
        for step in steps {
            match step {
                Step::Send(_) if next - connection.rcv_nxt >= WINDOW => {}
                Step::Resend(_) if next == connection.rcv_nxt => {}
                Step::Send(delivery) | Step::Resend(delivery) => {
                    let index = if matches!(step, Step::Send(_)) { next } else { connection.rcv_nxt };
                    next = next.max(index + 1);
                    if matches!(delivery, Delivery::LostBefore) {
                        continue;
                    }
                    let data = Tcp { seq: connection.seq(index as u32), ..Tcp::data(sender, 0) };
                    connection.net.pass(&data);
                    if matches!(delivery, Delivery::Arrives) {
                        connection.arrive(index);
                    }
                    passed.insert(index);
                }
                Step::Ack => {
                    let (missing, flags) = connection.ack();
                    let has_passed = passed.contains(&u64::from(missing));
                    if connection.cause(flags) == Cause::Radio {
                        prop_assert_eq!(has_passed, !from_mobile, "segment {}", missing);
                    }
                }
                Step::Handover => connection.net = Net::station(&config),
                Step::Forge { from_sender, index, seq, ack } => {
                    let from = if from_sender { sender } else { other(sender) };
                    let here = connection.seq(next as u32);
                    let (own, peers) = if from_sender { (here, PEER + 1) } else { (PEER + 1, here) };
                    let near = |far: u32| (far as i32).unsigned_abs() < 4000;
                    if !(near(seq) && near(ack)) {
                        let forged =
                            forgeries(from, own.wrapping_add(seq), peers.wrapping_add(ack)).remove(index);
                        connection.net.pass(&forged);
                    }
                }
                Step::Syn { port, isn } => {
                    connection.net.pass(&Tcp::new(Ip::V4, FIXED, SYN, isn, 0).port(port));
                }
            }
        }
    }
}
