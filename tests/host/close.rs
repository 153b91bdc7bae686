//! FINs, and segments that arrive while a connection closes.

use airtcp::tcp::{SocketOptions, State};
use airwire::options::Options;
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::common::{PROFILES, VARIANTS, profile};
use crate::test_host::{TestHost, mss, sack};

const ACK: Flags = Flags::ACK;
const FIN: Flags = Flags::ACK.with(Flags::FIN);

/// A full-sized segment with a FIN is one byte longer than the loss window, and must still be retransmitted.
#[test]
fn full_segment_with_fin_is_retransmitted() {
    for recipe in VARIANTS {
        for profile_name in PROFILES {
            let mut test = TestHost::connected(recipe, profile(profile_name), mss(1460), 65_535);
            test.enqueue(1460);
            assert_eq!(test.shutdown_write().len(), 1);
            let again = test.wait(Duration::from_secs(10));
            assert!(again.len() > 1, "{recipe} {profile_name}: {again:?}");
        }
    }
}

/// RFC 9293 §3.10.7.4: data beyond the peer's FIN is ignored. It must not end a connection that still sends.
#[test]
fn data_beyond_fin_is_ignored_in_last_ack() {
    let mut test = TestHost::connected("newreno", profile("default"), mss(1460), 65_535);
    test.segment(FIN, 1, 1, 65_535, 0);
    assert_eq!(test.state(), State::CloseWait);
    test.enqueue(1000);
    test.close();
    assert_eq!(test.state(), State::LastAck);
    let replies = test.segment(ACK, 2, 1, 65_535, 100);
    assert!(replies.iter().all(|o| !o.flags.contains(Flags::RST)), "{replies:?}");
    assert_eq!(test.state(), State::LastAck);
    assert!(!test.next().is_empty(), "the data is still retransmitted");
}

/// RFC 9293 §3.10.7.4, seventh step: in CLOSE-WAIT the segment text is ignored. A retransmitted FIN is
/// acknowledged.
#[test]
fn data_after_fin_is_ignored_in_close_wait() {
    for profile_name in PROFILES {
        let mut test = TestHost::connected("newreno", profile(profile_name), mss(1460), 65_535);
        test.segment(FIN, 1, 1, 65_535, 0);
        test.wait(Duration::from_secs(1));
        assert_eq!(test.segment(ACK, 2, 1, 65_535, 100).len(), 0, "{profile_name}");
        assert_eq!(test.segment(FIN, 1, 1, 65_535, 0).len(), 1, "{profile_name}");
    }
}

/// A FIN below data that has already arrived is ignored.
#[test]
fn fin_below_received_data_is_ignored() {
    let mut test = TestHost::connected("newreno", profile("default"), mss(1460), 65_535);
    test.segment(ACK, 101, 1, 65_535, 100);
    test.segment(FIN, 51, 1, 65_535, 0);
    test.segment(FIN, 200, 1, 65_535, 0);
    test.segment(ACK, 1, 1, 65_535, 100);
    assert_eq!((test.state(), test.connection().readable()), (State::Established, 200));
    test.segment(FIN, 201, 1, 65_535, 0);
    assert_eq!(test.state(), State::CloseWait);
}

/// RFC 2018: a FIN that arrives before the preceding data is part of the SACK block.
#[test]
fn early_fin_is_part_of_sack_block() {
    let mut test = TestHost::connected("sack", profile("linux"), sack(), 65_535);
    assert_eq!(test.segment(FIN, 1001, 1, 65_535, 0)[0].blocks(), [(1001, 1002)], "the FIN alone");
    assert_eq!(test.segment(ACK, 501, 1, 65_535, 500)[0].blocks(), [(501, 1002)], "500 bytes and the FIN");
    let out = test.segment(ACK, 1, 1, 65_535, 500);
    assert_eq!((out[0].ack, test.state()), (1002, State::CloseWait));
}

/// RFC 9293 §3.10.7.4: with a closed window data is refused, but the ACK is processed, even an ACK of our
/// FIN.
#[test]
fn refused_segment_still_acknowledges_fin() {
    let profile = profile("default");
    let options = SocketOptions { recv_buffer: Some(0), ..SocketOptions::of(&profile) };
    let mut test = TestHost::new("newreno", profile);
    test.connect(options, mss(1460), 65_535);
    test.shutdown_write();
    assert_eq!(test.state(), State::FinWait1);
    test.segment(ACK, 1, 2, 65_535, 100);
    assert_eq!((test.state(), test.connection().readable()), (State::FinWait2, 0));
}

/// RFC 6191: a new SYN ends TIME-WAIT, but the application can still read what it has not read yet.
#[test]
fn time_wait_data_stays_readable_after_new_syn() {
    let profile = profile("default");
    let options = SocketOptions::of(&profile);
    let mut test = TestHost::new("newreno", profile);
    test.open(options, mss(1460));
    test.segment(ACK, 1, 1, 1000, 0);
    test.accept();
    let id = test.id.unwrap();
    test.shutdown_write();
    test.segment(FIN, 1, 2, 1000, 10);
    assert_eq!(test.state(), State::TimeWait);
    test.options = mss(1460);
    let replies = test.segment(Flags::SYN, 100_000, 0, 1000, 0);
    assert!(replies.iter().any(|o| o.flags.contains(Flags::SYN)), "{replies:?}");
    let mut buffer = [0; 20];
    assert_eq!(test.host.read(id, &mut buffer), Ok(10));
    assert_eq!(test.host.read(id, &mut buffer), Ok(0));
    test.close();
    assert_eq!(test.host.connections(), 1, "only the new connection remains");
}

/// RFC 9293 §3.10.5, §3.10.7.4: TIME-WAIT survives a close with unread data and late segments. An abort sends
/// no reset if all data was sent.
#[test]
fn time_wait_and_last_ack_send_no_reset() {
    let mut test = TestHost::connected("newreno", profile("linux"), mss(1460), 65_535);
    test.shutdown_write();
    test.segment(FIN, 1, 2, 65_535, 100);
    assert_eq!(test.state(), State::TimeWait);
    assert!(test.close().is_empty());
    let out = test.segment(FIN, 101, 2, 65_535, 0);
    assert!(out.len() == 1 && !out[0].flags.contains(Flags::RST), "{out:?}");

    let mut test = TestHost::connected("newreno", profile("linux"), mss(1460), 65_535);
    test.segment(FIN, 1, 1, 65_535, 0);
    test.shutdown_write();
    assert_eq!(test.state(), State::LastAck);
    test.host.abort(test.id.unwrap());
    assert!(test.out().is_empty());
}

/// RFC 9293 §3.6.1: after a close, no application reads the missing data that precedes an early FIN, so
/// the answer is a reset.
#[test]
fn early_fin_after_close_triggers_reset() {
    let mut test = TestHost::connected("newreno", profile("linux"), mss(1460), 65_535);
    test.close();
    let out = test.segment(FIN, 101, 2, 65_535, 0);
    assert!(out.len() == 1 && out[0].flags.contains(Flags::RST), "{out:?}");
}

/// With the option `tso-defer`, a burst below a third of the window waits for an ACK that is near, unless a
/// FIN follows it (Linux, tcp_tso_should_defer()).
#[test]
fn short_last_burst_before_fin_is_not_deferred() {
    for (with_fin, sent) in [(false, vec![]), (true, vec![1460, 540])] {
        let mut test = TestHost::syn_sent("linux", profile("linux"));
        test.now += Duration::from_millis(5);
        test.options = sack();
        test.segment(Flags::SYN.with(ACK), 0, 1, 65_535, 0);
        test.options = Options::default();
        assert_eq!(test.write(4 * 1460).len(), 4);
        test.now += Duration::from_micros(4500);
        assert_eq!(test.write(4 * 1460).len(), 4, "two of ten segments still fit");
        test.enqueue(2000);
        let out = if with_fin { test.shutdown_write() } else { test.out() };
        assert_eq!(out.iter().map(|out| out.len).collect::<Vec<_>>(), sent, "with FIN: {with_fin}");
    }
}
