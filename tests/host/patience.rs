//! User timeouts and the thresholds R1 and R2 for unacknowledged data (RFC 9293 §3.8.3).

use airtcp::host::IoError;
use airtcp::profile::Profile;
use airtcp::tcp::{Ended, Patience, SocketOptions, State, Threshold};
use airtcp_testkit::pair::LEFT;
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::common::profile;
use crate::test_host::{TestHost, mss};

fn connected(patience: Patience) -> TestHost {
    let profile = profile("default");
    let options = SocketOptions { patience: Some(Box::new(patience)), ..SocketOptions::of(&profile) };
    let mut test = TestHost::new("newreno", profile);
    test.connect(options, mss(1000), 65_535);
    test
}

/// Waits until the connection has ended. Returns the time that took and the number of packets sent.
fn wait_until_closed(test: &mut TestHost) -> (Duration, usize) {
    let (began, mut packets) = (test.now, 0);
    while test.state() != State::Closed {
        packets += test.next().len();
    }
    (test.now - began, packets)
}

#[test]
fn r1_is_reported_until_peer_answers() {
    let mut test = connected(Patience { r1: Some(Threshold::retransmissions(2)), ..Patience::default() });
    test.host.note_changes();
    assert_eq!(test.write(1000).len(), 1);
    while test.host.poll_changed().is_some() {}
    // The timer expires after 1 s, 2 s and 4 s. At the third expiry, two retransmissions are unanswered.
    let began = test.now;
    assert_eq!(test.wait(Duration::from_secs(6)).len(), 2);
    assert_eq!(test.connection().unanswered(), None);
    assert_eq!(test.wait(Duration::from_secs(1)).len(), 1);
    assert_eq!(test.host.poll_changed(), test.id, "reaching R1 is reported as a change");
    let unanswered = test.connection().unanswered().unwrap();
    assert_eq!((unanswered.retransmissions, unanswered.error), (3, None));
    assert_eq!(unanswered.since - began, Duration::from_secs(1));
    test.segment(Flags::ACK, 1, 1001, 65_535, 0);
    assert_eq!(test.connection().unanswered(), None);
    assert_eq!(test.state(), State::Established);
}

#[test]
fn r2_ends_connection_after_count_or_time() {
    let mut test = connected(Patience { r2: Some(Threshold::retransmissions(3)), ..Patience::default() });
    test.write(1000);
    assert_eq!(wait_until_closed(&mut test), (Duration::from_secs(1 + 2 + 4 + 8), 3));
    assert_eq!(test.connection().ended(), Some(Ended::TimedOut));

    let time = Threshold::time(Duration::from_secs(20));
    let mut test = connected(Patience { r2: Some(time), ..Patience::default() });
    test.write(1000);
    // R2 is checked when the timer expires: 20 s have not passed at 15 s, but have at 31 s.
    assert_eq!(wait_until_closed(&mut test), (Duration::from_secs(31), 4));
}

#[test]
fn r2_ignores_peer_that_answers_probes() {
    let r2 = Threshold { retransmissions: 1, time: Duration::from_secs(1) };
    let mut test = connected(Patience { r2: Some(r2), ..Patience::default() });
    test.segment(Flags::ACK, 1, 1, 0, 0);
    assert!(test.write(1000).is_empty(), "the window is closed");
    for _ in 0..50 {
        assert_eq!(test.next().len(), 1, "a probe");
        test.segment(Flags::ACK, 1, 1, 0, 0);
        assert_eq!(test.state(), State::Established);
    }
    wait_until_closed(&mut test);
    assert_eq!(test.connection().ended(), Some(Ended::TimedOut));
}

#[test]
fn user_timeout_ends_connection_with_pending_data() {
    let limit = Duration::from_millis(2300);
    let patience = Patience { user_timeout: Some(limit), ..Patience::default() };

    // Unacknowledged data.
    let mut test = connected(patience);
    test.write(1000);
    assert_eq!(wait_until_closed(&mut test), (limit, 1));
    // An unacknowledged FIN.
    let mut test = connected(patience);
    assert_eq!(test.shutdown_write().len(), 1);
    assert_eq!(wait_until_closed(&mut test).0, limit);
    // Data that cannot be sent because the window is closed, although the peer answers probes.
    let mut test = connected(patience);
    test.segment(Flags::ACK, 1, 1, 0, 0);
    let began = test.now;
    test.write(1000);
    while test.state() != State::Closed {
        if !test.next().is_empty() {
            test.segment(Flags::ACK, 1, 1, 0, 0);
        }
    }
    assert_eq!(test.now - began, limit);
    // Without data to send, the timeout does not apply.
    let mut test = connected(patience);
    assert!(test.wait(Duration::from_secs(3600)).is_empty());
    assert_eq!(test.state(), State::Established);
}

/// RFC 9293 MUST-23: R2 for a SYN is at least 3 minutes. This holds for any maximum RTO.
#[test]
fn syn_retries_last_at_least_three_minutes() {
    for max in [1, 5, 60, 120] {
        let mut profile = profile("default");
        profile.timers.rto.limits.max = Duration::from_secs(max);
        let mut test = TestHost::syn_sent("newreno", profile);
        let (time, _) = wait_until_closed(&mut test);
        assert!(time >= Duration::from_secs(180), "maximum RTO of {max} s: ended after {time}");
        assert_eq!(test.connection().ended(), Some(Ended::TimedOut));
    }
}

#[test]
fn shutdown_read_resets_only_after_shutdown_write() {
    let mut buffer = [0; 100];
    for name in Profile::NAMES {
        let mut test = TestHost::connected("newreno", profile(name), mss(1000), 65_535);
        let id = test.id.unwrap();
        assert_eq!(test.host.read(id, &mut buffer), Err(IoError::WouldBlock));
        test.host.shutdown_read(id).unwrap();
        assert_eq!(test.host.read(id, &mut buffer), Ok(0), "{name}");
        test.segment(Flags::ACK, 1, 1, 65_535, 10);
        let kept = if name == "freebsd" { 0 } else { 10 };
        assert_eq!(test.host.read(id, &mut buffer), Ok(kept), "{name}");
        assert_eq!(test.host.read(id, &mut buffer), Ok(0), "{name}");
        test.wait(Duration::from_secs(1));

        test.shutdown_write();
        test.segment(Flags::ACK, 11, 2, 65_535, 0);
        let answers = test.segment(Flags::ACK, 11, 2, 65_535, 10);
        let reset = answers.iter().any(|out| out.flags.contains(Flags::RST));
        assert_eq!(reset, name != "freebsd", "{name}");
    }
}

#[test]
fn listener_ids_are_never_reused() {
    let profile = profile("default");
    let mut test = TestHost::new("newreno", profile.clone());
    let mut old = Vec::new();
    for _ in 0..1000 {
        let listener = test.host.listen((LEFT, 80).into(), 1, SocketOptions::of(&profile)).unwrap();
        test.host.unlisten(listener);
        test.host.unlisten(listener);
        assert_eq!(test.host.accept(listener), None);
        old.push(listener);
    }
    old.sort();
    old.dedup();
    assert_eq!(old.len(), 1000);
}
