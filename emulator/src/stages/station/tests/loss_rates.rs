//! Tests of the loss-rate report.

use airwire::view::TcpHeader;

use super::*;

/// Sends 1000 segments from `sender`, then one ACK back. Returns the rate in the ACK.
fn reported(stages: Vec<NamedStage>, sender: Port) -> f64 {
    let mut net = Net::of(stages);
    for index in 0..1000 {
        net.pass(&Tcp::new(Ip::V4, sender, PSH_ACK, index * 100, 1).payload(&[0; 100]));
    }
    let ack = Tcp::new(Ip::V4, other(sender), ACK, 1, 1).options(&TIMESTAMPS);
    let (_, options) = net.pass(&ack).unwrap();
    assert!(options.starts_with(&TIMESTAMPS));
    loss_rate::find(&options).expect("the ACK reports a loss rate").ratio()
}

/// Returns a stage that loses every `n`th packet of a direction.
fn lossy(direction: Direction, n: u32) -> impl Stage {
    let mut packets = 0_u32;
    Losing(move |packet: &Packet| {
        packets += u32::from(packet.direction == direction);
        (packet.direction == direction && packets.is_multiple_of(n)).then_some(DropReason::Loss)
    })
}

fn is_about(rate: f64, expected: f64) -> bool {
    // Half a unit of 2^-16 for each of two stations.
    (rate - expected).abs() <= 1.0 / 65_536.0
}

#[test]
fn ack_reports_loss_rate_in_data_direction() {
    let stages = |direction| {
        vec![named("station", Station::new(&reports(Side::Mobile))), named("radio", lossy(direction, 50))]
    };
    assert!(is_about(reported(stages(Direction::Down), FIXED), 0.02));
    assert!(is_about(reported(stages(Direction::Up), MOBILE), 0.02));
    // Losses in the other direction do not count for this sender.
    assert!(is_about(reported(stages(Direction::Up), FIXED), 0.0));
}

#[test]
fn loss_rates_of_two_radio_links_add_up() {
    let stages = vec![
        named("radio1", lossy(Direction::Down, 20)),
        named("station1", Station::new(&reports(Side::Fixed))),
        named("station2", Station::new(&reports(Side::Mobile))),
        named("radio2", lossy(Direction::Down, 50)),
    ];
    let rate = reported(stages, FIXED);
    assert!(is_about(rate, 0.05 + 0.02), "{rate}");
}

#[test]
fn radio_link_of_several_stages_has_combined_rate() {
    let stages = vec![
        named("station", Station::new(&reports(Side::Mobile))),
        named("one", lossy(Direction::Down, 10)),
        named("wire", hole(FIXED, &[], DropReason::QueueFull)),
        named("two", lossy(Direction::Down, 10)),
    ];
    let rate = reported(stages, FIXED);
    assert!(is_about(rate, 1.0 - 0.9 * 0.9), "{rate}");
}

#[test]
fn losses_outside_radio_link_are_not_reported() {
    let full: Vec<u32> = (0..1000).step_by(10).map(|index| index * 100).collect();
    let stages = vec![
        named("before", lossy(Direction::Down, 10)),
        named("station", Station::new(&reports(Side::Mobile))),
        named("queue", hole(FIXED, &full, DropReason::QueueFull)),
    ];
    assert!(is_about(reported(stages, FIXED), 0.0));
}

#[test]
fn report_waits_for_segment_with_free_space() {
    let mut net = Net::station(&reports(Side::Mobile));
    let sack = |blocks: u8| {
        let mut option = vec![1, 1, 5, 2 + 8 * blocks];
        option.resize(usize::from(4 + 8 * blocks), 9);
        [&TIMESTAMPS[..], &option].concat()
    };
    let full = Tcp::new(Ip::V4, MOBILE, ACK, 1, 1).options(&sack(3));
    assert_eq!(net.send(MOBILE, &full.packet()), Some(full.packet()));
    let room = Tcp::new(Ip::V4, MOBILE, ACK, 1, 1).options(&sack(2));
    assert_eq!(loss_rate::find(&net.pass(&room).unwrap().1), Some(LossRate(0)));

    let large = Tcp::new(Ip::V6, MOBILE, PSH_ACK, 1, 1).payload(&[7; 1440]);
    assert_eq!(
        net.send(MOBILE, &large.packet()),
        Some(large.packet()),
        "the packet already has the size of the MTU"
    );
    let fits = Tcp::new(Ip::V6, MOBILE, PSH_ACK, 1, 1).payload(&[7; 1432]);
    assert_eq!(net.send(MOBILE, &fits.packet()).unwrap().len(), 1500);
    let counters = &net.stats()["station"]["counters"];
    assert_eq!(
        (&counters["options_full"], &counters["over_mtu"], &counters["inserted"]),
        (&json!(1), &json!(1), &json!(2))
    );
}

#[test]
fn report_leaves_rest_of_packet_unchanged() {
    let mut net = Net::station(&StationConfig { transit_marks: true, ..reports(Side::Mobile) });
    for ip in [Ip::V4, Ip::V6] {
        let tcp = Tcp::new(ip, MOBILE, PSH_ACK, 77, 88).options(&TIMESTAMPS).payload(b"an odd payload!");
        let packet = tcp.packet();
        // Some links pad their packets.
        let mut padded = packet.clone();
        padded.extend([0xee; 3]);
        let arrived = net.send(MOBILE, &padded).unwrap();
        assert_eq!(arrived.len(), padded.len() + 8);
        assert!(arrived.ends_with(b"an odd payload!\xee\xee\xee"));
        let (segment, options) = read(&arrived[..arrived.len() - 3]);
        let TcpHeader { seq, ack, flags, .. } = *segment.header();
        assert_eq!((seq.0, ack.0, flags.0), (77, 88, PSH_ACK));
        assert_eq!((options.len(), &options[..12]), (20, &TIMESTAMPS[..]));
    }
}
