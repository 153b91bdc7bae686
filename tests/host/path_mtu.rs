//! Path MTU discovery (RFC 1191): the effects of real and forged ICMP errors.

use airtcp::profile::Profile;
use airtcp::tcp::SocketOptions;
use airtcp_testkit::pair::{LEFT, RIGHT};
use airwire::options::Options;
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::hostile::hand::{Hand, mss};

const ACK: Flags = Flags::ACK;
const ROUND_TRIP: Duration = Duration::from_millis(100);

/// A connection whose handshake took [`ROUND_TRIP`].
fn connected() -> Hand {
    let profile = Profile::default();
    let options = SocketOptions::of(&profile);
    let mut hand = Hand::new("newreno", profile);
    let (local, remote) = ((LEFT, 40_000).into(), (RIGHT, 80).into());
    hand.id = Some(hand.host.connect(hand.now, Some(local), remote, options).unwrap());
    hand.out();
    hand.now += ROUND_TRIP;
    hand.options = mss(1460);
    hand.segment(Flags::SYN.with(ACK), 0, 1, 65_535, 0);
    hand.options = Options::default();
    hand
}

/// Delivers an ICMP error about the first byte in flight.
fn too_big(hand: &mut Hand, mtu: u32) {
    let una = hand.connection().flight().una();
    hand.icmp(3, 4, mtu, una);
}

fn bytes_resent(hand: &Hand) -> u64 {
    hand.connection().statistics().bytes_resent
}

/// Sends one byte and returns whether its packet has Don't Fragment set.
fn forbids_fragments(hand: &mut Hand) -> bool {
    let id = hand.id.unwrap();
    assert_eq!(hand.host.write(hand.now, id, b"x"), Ok(1));
    hand.raw().expect("a packet")[6] & 0x40 != 0
}

/// RFC 1191 §6.4 retransmits at once. Without a limit, 100 errors of 56 bytes cause 100 retransmissions of
/// all data in flight.
#[test]
fn icmp_errors_cause_one_retransmission_per_round_trip() {
    let mut hand = connected();
    hand.write(20_000);
    let flight = hand.connection().flight().outstanding().bytes;
    for mtu in (1400..1500).rev() {
        too_big(&mut hand, mtu);
    }
    assert_eq!(hand.connection().smss(), 1360);
    let first = bytes_resent(&hand);
    assert!(first > 0 && first <= flight, "{first} bytes of {flight} retransmitted");
    // The segments retransmitted before the last error may still be too big.
    let later = hand.wait(ROUND_TRIP);
    let both = bytes_resent(&hand);
    assert!(both > first && both <= 2 * flight, "{both} bytes of {flight} retransmitted");
    assert!(later.iter().all(|out| out.len <= 1360), "{later:?}");
    assert_eq!(hand.connection().recovery().counters().timeouts, 0);
}

#[test]
fn small_segments_in_flight_are_not_retransmitted() {
    let mut hand = connected();
    hand.write(500);
    too_big(&mut hand, 1000);
    assert_eq!((hand.connection().smss(), bytes_resent(&hand)), (960, 0));
}

/// RFC 1191 §6.3.
#[test]
fn interface_mtu_is_tried_again_after_ten_minutes() {
    let mut hand = connected();
    hand.write(1460);
    too_big(&mut hand, 1000);
    hand.segment(ACK, 1, 1461, 65_535, 0);
    hand.wait(Duration::from_secs(599));
    assert_eq!(hand.write(1460)[0].len, 960);
    hand.segment(ACK, 1, 2421, 65_535, 0);
    hand.segment(ACK, 1, 2921, 65_535, 0);
    hand.wait(Duration::from_secs(1));
    assert_eq!(hand.write(1460)[0].len, 1460);
    // The path still takes less.
    too_big(&mut hand, 1000);
    assert_eq!((hand.connection().smss(), bytes_resent(&hand)), (960, 2 * 1460));
}

/// Linux, `__ip_rt_update_pmtu`: forged errors must not cause tiny segments, and a path that really takes
/// less fragments the packets.
#[test]
fn mtu_below_552_allows_fragments_instead() {
    let mut hand = connected();
    assert!(forbids_fragments(&mut hand));
    for _ in 0..2 {
        too_big(&mut hand, 68);
        assert_eq!(hand.connection().smss(), 512);
        assert_eq!(hand.host.counters().icmp_errors, 1, "the second error brings no news");
    }
    hand.segment(ACK, 1, 2, 65_535, 0);
    assert!(!forbids_fragments(&mut hand));
    hand.segment(ACK, 1, 3, 65_535, 0);
    hand.wait(Duration::from_secs(600));
    assert!(forbids_fragments(&mut hand));
}
