//! User timeouts and the thresholds R1 and R2 for unacknowledged data (RFC 9293 §3.8.3).

use airtcp::host::IoError;
use airtcp::profile::Profile;
use airtcp::tcp::{Ended, Patience, SocketOptions, State, Threshold};
use airtcp_testkit::pair::{LEFT, RIGHT};
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::hostile::hand::{Hand, mss};
use crate::hostile::world::profile;

fn options(profile: &Profile, patience: Patience) -> SocketOptions {
    SocketOptions { patience: Some(Box::new(patience)), ..SocketOptions::of(profile) }
}

fn connected(patience: Patience) -> Hand {
    let profile = profile("default");
    let mut hand = Hand::new("newreno", profile.clone());
    hand.connect(options(&profile, patience), mss(1000), 65_535);
    hand
}

/// Waits until the connection has ended. Returns the time that took and the number of packets sent.
fn wait_until_closed(hand: &mut Hand) -> (Duration, usize) {
    let (began, mut packets) = (hand.now, 0);
    while hand.state() != State::Closed {
        packets += hand.next().len();
    }
    (hand.now - began, packets)
}

#[test]
fn r1_is_reported_until_peer_answers() {
    let mut hand = connected(Patience { r1: Some(Threshold::retransmissions(2)), ..Patience::default() });
    hand.host.note_changes();
    assert_eq!(hand.write(1000).len(), 1);
    while hand.host.poll_changed().is_some() {}
    // The timer expires after 1 s, 2 s and 4 s. At the third expiry, two retransmissions are unanswered.
    let began = hand.now;
    assert_eq!(hand.wait(Duration::from_secs(6)).len(), 2);
    assert_eq!(hand.connection().unanswered(), None);
    assert_eq!(hand.wait(Duration::from_secs(1)).len(), 1);
    assert_eq!(hand.host.poll_changed(), hand.id, "reaching R1 is reported as a change");
    let unanswered = hand.connection().unanswered().unwrap();
    assert_eq!((unanswered.retransmissions, unanswered.error), (3, None));
    assert_eq!(unanswered.since - began, Duration::from_secs(1));
    hand.segment(Flags::ACK, 1, 1001, 65_535, 0);
    assert_eq!(hand.connection().unanswered(), None);
    assert_eq!(hand.state(), State::Established);
}

#[test]
fn r2_ends_connection_after_count_or_time() {
    let mut hand = connected(Patience { r2: Some(Threshold::retransmissions(3)), ..Patience::default() });
    hand.write(1000);
    assert_eq!(wait_until_closed(&mut hand), (Duration::from_secs(1 + 2 + 4 + 8), 3));
    assert_eq!(hand.connection().ended(), Some(Ended::TimedOut));

    let time = Threshold::time(Duration::from_secs(20));
    let mut hand = connected(Patience { r2: Some(time), ..Patience::default() });
    hand.write(1000);
    // R2 is checked when the timer expires: 20 s have not passed at 15 s, but have at 31 s.
    assert_eq!(wait_until_closed(&mut hand), (Duration::from_secs(31), 4));
}

#[test]
fn r2_ignores_peer_that_answers_probes() {
    let r2 = Threshold { retransmissions: 1, time: Duration::from_secs(1) };
    let mut hand = connected(Patience { r2: Some(r2), ..Patience::default() });
    hand.segment(Flags::ACK, 1, 1, 0, 0);
    assert!(hand.write(1000).is_empty(), "the window is closed");
    for _ in 0..50 {
        assert_eq!(hand.next().len(), 1, "a probe");
        hand.segment(Flags::ACK, 1, 1, 0, 0);
        assert_eq!(hand.state(), State::Established);
    }
    wait_until_closed(&mut hand);
    assert_eq!(hand.connection().ended(), Some(Ended::TimedOut));
}

#[test]
fn user_timeout_ends_connection_with_pending_data() {
    let limit = Duration::from_millis(2300);
    let patience = Patience { user_timeout: Some(limit), ..Patience::default() };

    // Unacknowledged data.
    let mut hand = connected(patience);
    hand.write(1000);
    assert_eq!(wait_until_closed(&mut hand), (limit, 1));
    // An unacknowledged FIN.
    let mut hand = connected(patience);
    hand.host.shutdown_write(hand.id.unwrap()).unwrap();
    assert_eq!(hand.out().len(), 1);
    assert_eq!(wait_until_closed(&mut hand).0, limit);
    // Data that a closed window holds back, although the peer answers probes.
    let mut hand = connected(patience);
    hand.segment(Flags::ACK, 1, 1, 0, 0);
    let began = hand.now;
    hand.write(1000);
    while hand.state() != State::Closed {
        if !hand.next().is_empty() {
            hand.segment(Flags::ACK, 1, 1, 0, 0);
        }
    }
    assert_eq!(hand.now - began, limit);
    // Without data to send, the timeout does not apply.
    let mut hand = connected(patience);
    assert!(hand.wait(Duration::from_secs(3600)).is_empty());
    assert_eq!(hand.state(), State::Established);
}

/// RFC 9293 MUST-23: R2 for a SYN is at least 3 minutes. This holds for any maximum RTO.
#[test]
fn syn_retries_last_at_least_three_minutes() {
    for max in [1, 5, 60, 120] {
        let mut profile = profile("default");
        profile.timers.rto.limits.max = Duration::from_secs(max);
        let options = SocketOptions::of(&profile);
        let mut hand = Hand::new("newreno", profile);
        let to = (RIGHT, 80).into();
        hand.id = Some(hand.host.connect(hand.now, None, to, options).unwrap());
        hand.out();
        let (time, _) = wait_until_closed(&mut hand);
        assert!(time >= Duration::from_secs(180), "maximum RTO of {max} s: ended after {time}");
        assert_eq!(hand.connection().ended(), Some(Ended::TimedOut));
    }
}

#[test]
fn shutdown_read_resets_only_after_shutdown_write() {
    let mut buffer = [0; 100];
    for name in Profile::NAMES {
        let profile = profile(name);
        let mut hand = Hand::new("newreno", profile.clone());
        hand.connect(SocketOptions::of(&profile), mss(1000), 65_535);
        let id = hand.id.unwrap();
        assert_eq!(hand.host.read(id, &mut buffer), Err(IoError::WouldBlock));
        hand.host.shutdown_read(id).unwrap();
        assert_eq!(hand.host.read(id, &mut buffer), Ok(0), "{name}");
        hand.segment(Flags::ACK, 1, 1, 65_535, 10);
        let kept = if name == "freebsd" { 0 } else { 10 };
        assert_eq!(hand.host.read(id, &mut buffer), Ok(kept), "{name}");
        assert_eq!(hand.host.read(id, &mut buffer), Ok(0), "{name}");
        hand.wait(Duration::from_secs(1));

        hand.host.shutdown_write(id).unwrap();
        hand.out();
        hand.segment(Flags::ACK, 11, 2, 65_535, 0);
        let answers = hand.segment(Flags::ACK, 11, 2, 65_535, 10);
        let reset = answers.iter().any(|out| out.flags.contains(Flags::RST));
        assert_eq!(reset, name != "freebsd", "{name}");
    }
}

/// Opens and closes listeners one after the other. No `ListenId` is used twice.
#[test]
fn listener_ids_are_never_reused() {
    let profile = profile("default");
    let mut hand = Hand::new("newreno", profile.clone());
    let mut old = Vec::new();
    for _ in 0..1000 {
        let listener = hand.host.listen((LEFT, 80).into(), 1, SocketOptions::of(&profile)).unwrap();
        hand.host.unlisten(listener);
        hand.host.unlisten(listener);
        assert_eq!(hand.host.accept(listener), None);
        old.push(listener);
    }
    old.sort();
    old.dedup();
    assert_eq!(old.len(), 1000);
}
