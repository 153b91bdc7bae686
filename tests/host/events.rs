//! Events that a host reports about its connections, for logs.

use airtcp::events::{Agreement, EventKind, Offer, Refusal, Timer};
use airtcp::profile::Profile;
use airtcp::recovery::What as Decided;
use airtcp::tcp::{Ended, IcmpError, SocketOptions, State, Unreachable};
use airtcp_testkit::exchange::Exchange;
use airtcp_testkit::pair::{Impairments, LEFT, RIGHT};
use airwire::options::Options;
use airwire::segment::{BadPacket, Flags};
use airwire::time::Duration;

use crate::common::{pair, plan};
use crate::test_host::{TestHost, mss, with_timestamps};

/// Drains the events since the last call, and checks that they concern the only connection.
fn take_events(test: &mut TestHost) -> Vec<EventKind> {
    let now = test.now;
    std::iter::from_fn(|| test.host.poll_event())
        .map(|event| {
            assert_eq!(event.at, now, "{:?}", event.kind);
            let (local, remote) = event.ends.expect("the event has addresses");
            assert_eq!((local.ip(), remote.ip()), (LEFT, RIGHT));
            event.kind
        })
        .collect()
}

/// A connected host with events enabled.
fn connected(recipe: &str, options: Options) -> TestHost {
    let mut test = TestHost::new(recipe, Profile::default());
    test.host.note_events();
    test.connect(SocketOptions::of(&Profile::default()), options, 60_000);
    test
}

fn refusals(test: &mut TestHost) -> Vec<(Refusal, Option<u64>)> {
    let refused = |what| match what {
        EventKind::Refused { why, segment } => Some((why, segment.seq)),
        _ => None,
    };
    take_events(test).into_iter().filter_map(refused).collect()
}

#[test]
fn active_open_reports_offers_and_agreement() {
    let syn_ack = Options { window_scale: Some(3), ..with_timestamps(mss(1000), 7) };
    let events = take_events(&mut connected("sack", syn_ack));
    let ours = Offer { mss: Some(1460), window_scale: Some(8), sack: true, timestamps: true, ecn: false };
    let theirs = Offer { mss: Some(1000), window_scale: Some(3), sack: false, timestamps: true, ecn: false };
    let at = |wanted: &EventKind| events.iter().position(|what| what == wanted);
    let agreed =
        Agreement { smss: 988, own_scale: 8, peer_scale: 3, sack: false, timestamps: true, ecn: false };
    let places = [
        at(&EventKind::Offered(ours)),
        at(&EventKind::PeerOffered(theirs)),
        at(&EventKind::State { from: State::SynSent, to: State::Established }),
        at(&EventKind::Agreed(agreed)),
    ];
    assert!(places.is_sorted() && places[0].is_some(), "{places:?} in {events:?}");
}

#[test]
fn passive_open_reports_offers_and_agreement() {
    let mut test = TestHost::new("newreno", Profile::default());
    test.host.note_events();
    test.open(SocketOptions::of(&Profile::default()), mss(1000));
    test.segment(Flags::ACK, 1, 1, 60_000, 0);
    let events = take_events(&mut test);
    let kinds: Vec<_> = events
        .iter()
        .filter_map(|what| match what {
            EventKind::PeerOffered(_) => Some("peer"),
            EventKind::Offered(_) => Some("own"),
            EventKind::State { from: State::SynReceived, to: State::Established } => Some("open"),
            EventKind::Agreed(_) => Some("agreed"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["peer", "own", "open", "agreed"]);
}

#[test]
fn refused_segment_is_reported_with_reason_and_offset() {
    let mut test = connected("newreno", with_timestamps(mss(1000), 100));
    test.segment(Flags::ACK, 1, 1, 60_000, 10);
    take_events(&mut test);
    let ack = Flags::ACK;
    test.segment(ack, 1, 1, 60_000, 10);
    assert_eq!(refusals(&mut test), [(Refusal::Copy, Some(1))]);
    test.segment(ack, 500_000, 1, 60_000, 10);
    assert_eq!(refusals(&mut test), [(Refusal::OutOfWindow, Some(500_000))]);
    test.segment(Flags::RST, 20, 0, 0, 0);
    assert_eq!(refusals(&mut test), [(Refusal::ResetNotExact, Some(20))]);
    test.segment(Flags::RST, 500_000, 0, 0, 0);
    assert_eq!(refusals(&mut test), [(Refusal::ResetOutOfWindow, Some(500_000))]);
    test.segment(Flags::SYN, 11, 0, 60_000, 0);
    assert_eq!(refusals(&mut test), [(Refusal::SynWhenOpen, Some(11))]);
    test.segment(ack, 11, 70_000, 60_000, 0);
    assert_eq!(refusals(&mut test), [(Refusal::AckOfUnsent, Some(11))]);
    test.segment(Flags::PSH, 11, 0, 60_000, 3);
    assert_eq!(refusals(&mut test), [(Refusal::NoAck, Some(11))]);
    let options = std::mem::replace(&mut test.options, with_timestamps(Options::default(), 50));
    test.segment(ack, 11, 1, 60_000, 3);
    assert_eq!(refusals(&mut test), [(Refusal::OldTimestamp, Some(11))]);
    test.options = options;
    test.segment(ack, 11, 1, 60_000, 3);
    assert_eq!(refusals(&mut test), [], "the segment is accepted");
    // After the connection has ended, segments have no offset.
    test.close();
    test.segment(Flags::RST, 14, 0, 0, 0);
    take_events(&mut test);
    test.segment(ack, 14, 2, 60_000, 0);
    assert_eq!(refusals(&mut test), [(Refusal::NoListener, None)]);
}

#[test]
fn damaged_segment_is_reported_with_its_ports() {
    let mut test = connected("newreno", mss(1000));
    take_events(&mut test);
    let mut packet = Vec::new();
    let id = test.id.unwrap();
    test.host.write(test.now, id, b"text").unwrap();
    assert!(test.host.poll_packet(test.now, &mut packet));
    take_events(&mut test);
    // The host's own packet, with swapped addresses and one flipped bit.
    let (from, to) = (packet[12..16].to_vec(), packet[16..20].to_vec());
    packet[12..16].copy_from_slice(&to);
    packet[16..20].copy_from_slice(&from);
    *packet.last_mut().unwrap() ^= 1;
    test.host.handle_packet(test.now, &packet);
    let event = test.host.poll_event().expect("the bad packet is reported");
    assert_eq!(event.kind, EventKind::Bad(BadPacket::TcpChecksum));
    assert_eq!(event.ends, Some(((LEFT, 80).into(), (RIGHT, 40_000).into())));
}

#[test]
fn timer_start_expiry_and_stop_are_reported() {
    let mut test = connected("newreno", mss(1000));
    take_events(&mut test);
    test.write(3000);
    let rto = Timer::Retransmission;
    let set = |events: &[EventKind]| {
        events.iter().find_map(|what| match what {
            EventKind::TimerSet { timer: Timer::Retransmission, until } => Some(*until),
            _ => None,
        })
    };
    let first = set(&take_events(&mut test)).expect("data is outstanding");
    assert_eq!(test.host.next_deadline(), Some(first));
    test.next();
    let news = take_events(&mut test);
    let fired = news.iter().position(|what| *what == EventKind::TimerFired { timer: rto });
    let decided = news.iter().position(
        |what| matches!(what, EventKind::Decided(decision) if decision.what == Decided::Timeout { offset: 1 }),
    );
    assert!(fired.is_some() && fired < decided, "{news:?}");
    let again = set(&news).expect("the retransmission sets the timer");
    assert!(again - first > Duration::from_millis(500), "backed off: {first} {again}");
    test.segment(Flags::ACK, 1, 3001, 60_000, 0);
    assert!(take_events(&mut test).contains(&EventKind::TimerStopped { timer: rto }));
}

#[test]
fn window_close_and_open_are_reported() {
    let mut test = connected("newreno", mss(1000));
    take_events(&mut test);
    test.segment(Flags::ACK, 1, 1, 0, 0);
    assert!(take_events(&mut test).contains(&EventKind::PeerWindow { bytes: 0 }));
    test.segment(Flags::ACK, 1, 1, 500, 0);
    assert!(take_events(&mut test).contains(&EventKind::PeerWindow { bytes: 500 }));
    test.segment(Flags::ACK, 1, 1, 600, 0);
    assert!(
        !take_events(&mut test).iter().any(|what| matches!(what, EventKind::PeerWindow { .. })),
        "only a closing or opening window is reported"
    );

    let mut test = TestHost::new("newreno", Profile::default());
    test.host.note_events();
    let options = SocketOptions { recv_buffer: Some(2000), ..SocketOptions::of(&Profile::default()) };
    test.connect(options, mss(1000), 60_000);
    test.segment(Flags::ACK, 1, 1, 60_000, 1000);
    test.segment(Flags::ACK, 1001, 1, 60_000, 1000);
    assert!(take_events(&mut test).contains(&EventKind::OwnWindow { bytes: 0 }));
    let id = test.id.unwrap();
    test.host.read(id, &mut [0; 2000]).unwrap();
    test.out();
    let opened = |what: &EventKind| matches!(what, EventKind::OwnWindow { bytes } if *bytes >= 1000);
    assert!(take_events(&mut test).iter().any(opened));
}

#[test]
fn connection_end_is_reported_once_with_reason() {
    let mut test = connected("newreno", mss(1000));
    take_events(&mut test);
    test.segment(Flags::RST, 1, 0, 0, 0);
    let news = take_events(&mut test);
    let ends: Vec<_> = news.iter().filter(|what| matches!(what, EventKind::Ended(_))).collect();
    assert_eq!(ends, [&EventKind::Ended(Some(Ended::Reset))]);
    assert!(news.contains(&EventKind::State { from: State::Established, to: State::Closed }));
}

#[test]
fn events_and_trace_report_same_decisions() {
    let path = Impairments { loss: 0.05, queue: 50, ..Impairments::lossless(Duration::from_millis(20)) };
    let mut pair = pair(3, "sack+rack", "default", path);
    pair.left.note_events();
    pair.left.trace_decisions();
    let mut exchange = Exchange::new(pair, plan("default", [200_000, 0])).unwrap();
    while !exchange.is_complete() && exchange.step().unwrap() {}
    let traced = exchange.take_trace(airtcp_testkit::pair::Peer::Left);
    let events: Vec<_> = std::iter::from_fn(|| exchange.pair.left.poll_event())
        .filter_map(|event| match event.kind {
            EventKind::Decided(decision) => Some(decision),
            _ => None,
        })
        .collect();
    assert!(traced.iter().any(|decision| matches!(decision.what, Decided::Lost { .. })));
    assert_eq!(events[..traced.len()], traced);
}

/// Drains the events and returns the ICMP errors and the changes of the path MTU.
fn path_events(test: &mut TestHost) -> Vec<EventKind> {
    let events = take_events(test).into_iter();
    events.filter(|what| matches!(what, EventKind::Icmp { .. } | EventKind::Pmtu { .. })).collect()
}

#[test]
fn icmp_error_is_reported_as_believed_or_not() {
    let mut test = connected("newreno", mss(1460));
    test.write(1000);
    take_events(&mut test);
    let host = EventKind::Icmp { error: IcmpError::Unreachable(Unreachable::Host), believed: true };
    test.icmp(3, 1, 0, 1);
    assert_eq!(path_events(&mut test), [host]);
    // RFC 5927 §4.1: an ICMP error must quote data in flight. Bytes 1 to 1000 are in flight; 1001 is not sent
    // yet.
    for offset in [0, 1001] {
        test.icmp(3, 3, 0, offset);
        let port = EventKind::Icmp { error: IcmpError::Unreachable(Unreachable::Port), believed: false };
        assert_eq!(path_events(&mut test), [port], "{offset}");
    }
    // Source quench is ignored (RFC 6633).
    test.icmp(4, 0, 0, 1);
    assert_eq!(path_events(&mut test), []);
    assert_eq!(test.state(), State::Established);
}

#[test]
fn empty_ping_is_answered() {
    let mut test = connected("newreno", mss(1460));
    test.icmp_message(vec![8, 0, 0, 0, 0x12, 0x34, 0, 1]);
    let reply = test.raw().expect("a reply");
    assert_eq!((reply.len(), reply[9], reply[20]), (28, 1, 0), "an ICMP echo reply");
    assert_eq!(reply[24..], [0x12, 0x34, 0, 1]);
    assert_eq!(airwire::checksum::plain(&reply[20..]), 0, "the checksum is right");
}

#[test]
fn fixed_right_edge_does_not_count_as_shrinking() {
    let mut test = connected("newreno", mss(1460));
    test.write(2920);
    let shrunk = |test: &TestHost| test.connection().statistics().window_shrunk;
    test.segment(Flags::ACK, 1, 1, 5000, 0);
    let first = shrunk(&test);
    test.segment(Flags::ACK, 1, 1461, 5000 - 1460, 0);
    assert_eq!(shrunk(&test), first, "the right edge stays");
    test.segment(Flags::ACK, 1, 2921, 5000 - 2921, 0);
    assert_eq!(shrunk(&test), first + 1, "the right edge moves to the left");
}

#[test]
fn pmtu_decrease_is_reported_and_increase_is_ignored() {
    let mut test = connected("newreno", mss(1460));
    test.write(3000);
    take_events(&mut test);
    let too_big = |mtu, believed| EventKind::Icmp { error: IcmpError::TooBig { mtu }, believed };
    test.icmp(3, 4, 1000, 1);
    assert_eq!(path_events(&mut test), [too_big(1000, true), EventKind::Pmtu { from: 1500, to: 1000 }]);
    for mtu in [1000, 1400] {
        test.icmp(3, 4, mtu, 1);
        assert_eq!(path_events(&mut test), [too_big(mtu, false)]);
    }
    // An old router does not report the next-hop MTU (RFC 1191 §5).
    test.icmp(3, 4, 0, 1);
    assert_eq!(path_events(&mut test), [too_big(0, true), EventKind::Pmtu { from: 1000, to: 576 }]);
}

#[test]
fn events_are_off_by_default() {
    let mut test = TestHost::connected("newreno", Profile::default(), mss(1000), 60_000);
    test.segment(Flags::ACK, 500_000, 1, 60_000, 10);
    assert_eq!(test.host.poll_event(), None);
}
