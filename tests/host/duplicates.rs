//! Duplicates: which segments count as duplicate ACKs, and when a D-SACK block that waits for an ACK is
//! dropped. Linux drops it at the next data segment, except on the fast path of an established connection
//! (`tcp_data_queue()`).

use airtcp::profile::{AckRules, Profile};
use airtcp::tcp::{SocketOptions, State};
use airwire::options::Options;
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::hostile::hand::{Hand, mss};

/// Bytes of each segment from the peer. Segments of less than 128 bytes do not make ACKs quick.
const LEN: usize = 100;

/// A connected host. The peer uses SACK.
fn connected(profile: Profile) -> Hand {
    let options = SocketOptions::of(&profile);
    let mut hand = Hand::new("sack", profile);
    hand.connect(options, Options { sack_permitted: true, ..mss(1460) }, 65_535);
    hand
}

/// A host with the profile `linux`, which delays its ACKs from the start.
fn linux() -> Hand {
    let mut profile = Profile::linux();
    if let AckRules::Linux(acks) = &mut profile.acks.policy.rules {
        acks.quick = 0;
    }
    connected(profile)
}

fn put(hand: &mut Hand, seq: u64) {
    let ack = hand.connection().flight().una();
    hand.put(Flags::ACK, seq, ack, 65_535, LEN);
}

/// Delivers a segment that does not cause an immediate ACK.
fn put_quietly(hand: &mut Hand, seq: u64) {
    put(hand, seq);
    let out = hand.out();
    assert!(out.is_empty(), "{out:?}");
}

/// Returns the SACK blocks of the next ACK, which may be delayed.
fn next_blocks(hand: &mut Hand) -> Vec<(u64, u64)> {
    let mut out = hand.out();
    out.extend(hand.wait(Duration::from_millis(200)));
    assert_eq!(out.len(), 1, "{out:?}");
    out[0].blocks()
}

/// Delivers 1..101 and 51..151. The ACK that reports the duplicate is delayed.
fn await_ack_of_duplicate(hand: &mut Hand) {
    put(hand, 1);
    assert_eq!(next_blocks(hand), []);
    put_quietly(hand, 51);
}

#[test]
fn linux_keeps_pending_dsack_on_fast_path() {
    let mut hand = linux();
    await_ack_of_duplicate(&mut hand);
    put(&mut hand, 151);
    assert_eq!(next_blocks(&mut hand), [(51, 101)]);
}

#[test]
fn linux_drops_pending_dsack_at_out_of_order_segment() {
    let mut hand = linux();
    await_ack_of_duplicate(&mut hand);
    put(&mut hand, 301);
    assert_eq!(next_blocks(&mut hand), [(301, 401)]);
}

#[test]
fn linux_drops_pending_dsack_while_data_is_missing() {
    let mut hand = linux();
    put(&mut hand, 1);
    assert_eq!(next_blocks(&mut hand), []);
    // The first three ACKs of a hole are immediate. The ACK of 551..651, half of which is a duplicate, waits.
    for (seq, end) in [(301, 401), (401, 501), (501, 601)] {
        put(&mut hand, seq);
        assert_eq!(hand.out()[0].blocks(), [(301, end)]);
    }
    put_quietly(&mut hand, 551);
    put(&mut hand, 101);
    assert_eq!(next_blocks(&mut hand), [(301, 651)]);
}

#[test]
fn linux_drops_pending_dsack_after_half_close() {
    let mut hand = linux();
    hand.host.shutdown_write(hand.id.unwrap()).unwrap();
    hand.out();
    hand.segment(Flags::ACK, 1, 2, 65_535, 0);
    assert_eq!(hand.state(), State::FinWait2);
    await_ack_of_duplicate(&mut hand);
    put(&mut hand, 151);
    assert_eq!(next_blocks(&mut hand), []);
}

/// RFC 2883 §4: the next ACK reports the duplicate, whatever arrives before it is sent.
#[test]
fn other_profiles_report_duplicate_in_next_ack() {
    let mut hand = connected(Profile::default());
    put(&mut hand, 1);
    assert_eq!(next_blocks(&mut hand), []);
    put(&mut hand, 51);
    put(&mut hand, 301);
    assert_eq!(next_blocks(&mut hand), [(51, 101), (301, 401)]);
}

/// RFC 5681 §2: a duplicate ACK carries neither data nor a SYN or FIN.
#[test]
fn data_and_fin_are_not_duplicate_acks() {
    const FIN: Flags = Flags::ACK.with(Flags::FIN);
    for (flags, len, repairs) in [(Flags::ACK, 0, true), (Flags::ACK, LEN, false), (FIN, 0, false)] {
        let profile = Profile::default();
        let options = SocketOptions::of(&profile);
        let mut hand = Hand::new("newreno", profile);
        hand.connect(options, mss(1000), 65_535);
        assert!(hand.write(10_000).len() > 3);
        for _ in 0..2 {
            hand.segment(Flags::ACK, 1, 1, 65_535, 0);
        }
        let out = hand.segment(flags, 1, 1, 65_535, len);
        assert_eq!(out.iter().any(|out| out.seq == 1), repairs, "{flags:?}, {len} bytes: {out:?}");
    }
}
