//! Path MTU discovery (RFC 1191): the effects of real and forged ICMP errors.

use airwire::options::Options;
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::common::{VARIANTS, profile};
use crate::test_host::{TestHost, mss};

const ACK: Flags = Flags::ACK;
const ROUND_TRIP: Duration = Duration::from_millis(100);

/// A connection whose handshake took [`ROUND_TRIP`].
fn connected() -> TestHost {
    let mut test = TestHost::syn_sent("newreno", profile("default"));
    test.now += ROUND_TRIP;
    test.options = mss(1460);
    test.segment(Flags::SYN.with(ACK), 0, 1, 65_535, 0);
    test.options = Options::default();
    test
}

/// Delivers an ICMP error about the first byte in flight.
fn too_big(test: &mut TestHost, mtu: u32) {
    let una = test.connection().flight().una();
    test.icmp(3, 4, mtu, una);
}

fn bytes_resent(test: &TestHost) -> u64 {
    test.connection().statistics().bytes_resent
}

/// Sends one byte and returns whether its packet has Don't Fragment set.
fn forbids_fragments(test: &mut TestHost) -> bool {
    test.enqueue(1);
    test.raw().expect("a packet")[6] & 0x40 != 0
}

/// RFC 1191 §6.4: the sender retransmits at once. Without a limit, 100 errors of 56 bytes would cause 100
/// retransmissions of all data in flight.
#[test]
fn icmp_errors_cause_one_retransmission_per_round_trip() {
    let mut test = connected();
    test.write(20_000);
    let flight = test.connection().flight().outstanding().bytes;
    for mtu in (1400..1500).rev() {
        too_big(&mut test, mtu);
    }
    assert_eq!(test.connection().smss(), 1360);
    let first = bytes_resent(&test);
    assert!(first > 0 && first <= flight, "{first} bytes of {flight} retransmitted");
    // The segments retransmitted before the last error may still be too big.
    let later = test.wait(ROUND_TRIP);
    let both = bytes_resent(&test);
    assert!(both > first && both <= 2 * flight, "{both} bytes of {flight} retransmitted");
    assert!(later.iter().all(|out| out.len <= 1360), "{later:?}");
    assert_eq!(test.connection().recovery().counters().timeouts, 0);
}

#[test]
fn small_segments_in_flight_are_not_retransmitted() {
    let mut test = connected();
    test.write(500);
    too_big(&mut test, 1000);
    assert_eq!((test.connection().smss(), bytes_resent(&test)), (960, 0));
}

/// RFC 1191 §6.4: after "packet too big", data in flight is split into smaller segments, even if the window
/// is only one such segment.
#[test]
fn packet_too_big_splits_segments_after_timeout() {
    for recipe in VARIANTS {
        let mut test = TestHost::connected(recipe, profile("default"), mss(1460), 65_535);
        test.write(5000);
        assert!(!test.next().is_empty(), "a timeout");
        let mut out = test.icmp(3, 4, 576, 1);
        out.extend(test.wait(Duration::from_secs(20)));
        assert!(out.iter().any(|o| o.seq == 1) && out.iter().all(|o| o.len <= 536), "{recipe}: {out:?}");
    }
}

/// RFC 1191 §6.3: the larger estimate is tried 10 minutes after a decrease.
#[test]
fn interface_mtu_is_tried_again_after_ten_minutes() {
    let mut test = connected();
    test.write(1460);
    too_big(&mut test, 1000);
    test.segment(ACK, 1, 1461, 65_535, 0);
    test.wait(Duration::from_secs(599));
    assert_eq!(test.write(1460)[0].len, 960);
    test.segment(ACK, 1, 2421, 65_535, 0);
    test.segment(ACK, 1, 2921, 65_535, 0);
    test.wait(Duration::from_secs(1));
    assert_eq!(test.write(1460)[0].len, 1460);
    // The path still has the smaller MTU.
    too_big(&mut test, 1000);
    assert_eq!((test.connection().smss(), bytes_resent(&test)), (960, 2 * 1460));
}

/// Linux, `__ip_rt_update_pmtu`: forged errors must not cause tiny segments, and a path whose MTU really
/// is smaller fragments the packets.
#[test]
fn mtu_below_552_allows_fragments_instead() {
    let mut test = connected();
    assert!(forbids_fragments(&mut test));
    for _ in 0..2 {
        too_big(&mut test, 68);
        assert_eq!(test.connection().smss(), 512);
        assert_eq!(test.host.counters().icmp_errors, 1, "the second error brings no news");
    }
    test.segment(ACK, 1, 2, 65_535, 0);
    assert!(!forbids_fragments(&mut test));
    test.segment(ACK, 1, 3, 65_535, 0);
    test.wait(Duration::from_secs(600));
    assert!(forbids_fragments(&mut test));
}
