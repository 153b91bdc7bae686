//! Duplicates: which segments count as duplicate ACKs, and when a D-SACK block that waits for an ACK is
//! dropped. Linux drops it at the next data segment, except on the fast path of an established connection
//! (`tcp_data_queue()`).

use airtcp::profile::{AckRules, Profile};
use airtcp::tcp::State;
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::test_host::{TestHost, mss, sack};

/// Bytes of each segment from the peer. Segments of less than 128 bytes do not make ACKs quick.
const LEN: usize = 100;

/// A connected host. The peer uses SACK.
fn connected(profile: Profile) -> TestHost {
    TestHost::connected("sack", profile, sack(), 65_535)
}

/// A host with the profile `linux`, which delays its ACKs from the start.
fn linux() -> TestHost {
    let mut profile = Profile::linux();
    if let AckRules::Linux(acks) = &mut profile.acks.policy.rules {
        acks.quick = 0;
    }
    connected(profile)
}

fn deliver(test: &mut TestHost, seq: u64) {
    let ack = test.connection().flight().una();
    test.deliver(Flags::ACK, seq, ack, 65_535, LEN);
}

/// Delivers a segment that does not cause an immediate ACK.
fn deliver_quietly(test: &mut TestHost, seq: u64) {
    deliver(test, seq);
    let out = test.out();
    assert!(out.is_empty(), "{out:?}");
}

/// Returns the SACK blocks of the next ACK, which may be delayed.
fn next_blocks(test: &mut TestHost) -> Vec<(u64, u64)> {
    let mut out = test.out();
    out.extend(test.wait(Duration::from_millis(200)));
    assert_eq!(out.len(), 1, "{out:?}");
    out[0].blocks()
}

/// Delivers 1..101 and 51..151. The ACK that reports the duplicate is delayed.
fn await_ack_of_duplicate(test: &mut TestHost) {
    deliver(test, 1);
    assert_eq!(next_blocks(test), []);
    deliver_quietly(test, 51);
}

#[test]
fn linux_keeps_pending_dsack_on_fast_path() {
    let mut test = linux();
    await_ack_of_duplicate(&mut test);
    deliver(&mut test, 151);
    assert_eq!(next_blocks(&mut test), [(51, 101)]);
}

#[test]
fn linux_drops_pending_dsack_at_hole() {
    let mut test = linux();
    await_ack_of_duplicate(&mut test);
    deliver(&mut test, 301);
    assert_eq!(next_blocks(&mut test), [(301, 401)]);
}

#[test]
fn linux_drops_pending_dsack_while_data_is_missing() {
    let mut test = linux();
    deliver(&mut test, 1);
    assert_eq!(next_blocks(&mut test), []);
    // The first three ACKs of a hole are immediate. The ACK of 551..651, half of which is a duplicate, waits.
    for (seq, end) in [(301, 401), (401, 501), (501, 601)] {
        deliver(&mut test, seq);
        assert_eq!(test.out()[0].blocks(), [(301, end)]);
    }
    deliver_quietly(&mut test, 551);
    deliver(&mut test, 101);
    assert_eq!(next_blocks(&mut test), [(301, 651)]);
}

#[test]
fn linux_drops_pending_dsack_after_half_close() {
    let mut test = linux();
    test.shutdown_write();
    test.segment(Flags::ACK, 1, 2, 65_535, 0);
    assert_eq!(test.state(), State::FinWait2);
    await_ack_of_duplicate(&mut test);
    deliver(&mut test, 151);
    assert_eq!(next_blocks(&mut test), []);
}

/// RFC 2883 §4: the next ACK reports the duplicate, also if other segments arrive earlier.
#[test]
fn other_profiles_report_duplicate_in_next_ack() {
    let mut test = connected(Profile::default());
    deliver(&mut test, 1);
    assert_eq!(next_blocks(&mut test), []);
    deliver(&mut test, 51);
    deliver(&mut test, 301);
    assert_eq!(next_blocks(&mut test), [(51, 101), (301, 401)]);
}

/// A segment that repeats data counts as a duplicate, whether or not D-SACK reports it.
#[test]
fn overlap_counts_as_duplicate_with_or_without_dsack() {
    for dsack in [true, false] {
        let mut test = connected(Profile::linux().with(|it| it.acks.dsack = dsack));
        test.segment(Flags::ACK, 1, 1, 65_535, LEN);
        // The second half of the first and third segment is new. The second segment follows a hole.
        for (seq, duplicates) in [(51, 1), (501, 1), (551, 2), (1, 3)] {
            test.segment(Flags::ACK, seq, 1, 65_535, LEN);
            let counted = test.connection().statistics().duplicate_segments_in;
            assert_eq!(counted, duplicates, "segment at {seq}, D-SACK {dsack}");
        }
    }
}

/// RFC 5681 §2: a duplicate ACK carries neither data nor a SYN or FIN.
#[test]
fn data_and_fin_are_not_duplicate_acks() {
    const FIN: Flags = Flags::ACK.with(Flags::FIN);
    for (flags, len, repairs) in [(Flags::ACK, 0, true), (Flags::ACK, LEN, false), (FIN, 0, false)] {
        let mut test = TestHost::connected("newreno", Profile::default(), mss(1000), 65_535);
        assert!(test.write(10_000).len() > 3);
        for _ in 0..2 {
            test.segment(Flags::ACK, 1, 1, 65_535, 0);
        }
        let out = test.segment(flags, 1, 1, 65_535, len);
        assert_eq!(out.iter().any(|out| out.seq == 1), repairs, "{flags:?}, {len} bytes: {out:?}");
    }
}

/// RFC 2018 §8 permits a receiver to drop out-of-order data, but then it must not report it any more.
#[test]
fn dropped_data_is_not_reported() {
    let mut profile = Profile::default();
    // At most 64 ranges.
    profile.acks.recv_buffer = 8000;
    let mut test = connected(profile);
    let ranges: Vec<u64> = (0..64).map(|n| 1001 + 20 * n).collect();
    for start in &ranges {
        let out = test.segment(Flags::ACK, *start, 1, 65_535, 10);
        assert_eq!(out[0].blocks()[0], (*start, start + 10));
    }
    // A lower range replaces the highest one.
    let out = test.segment(Flags::ACK, 501, 1, 65_535, 10);
    let expected = [501, ranges[62], ranges[61]].map(|start| (start, start + 10));
    assert_eq!(out[0].blocks()[..3], expected);
    assert!(!out[0].blocks().contains(&(ranges[63], ranges[63] + 10)), "{:?}", out[0].blocks());
}
