//! The handshake, and calls of the application during the handshake.

use airtcp::host::IoError;
use airtcp::tcp::{SocketOptions, State};
use airwire::options::Options;
use airwire::segment::Flags;

use crate::common::{PROFILES, profile};
use crate::test_host::{TestHost, mss};

const ACK: Flags = Flags::ACK;
const FIN: Flags = Flags::ACK.with(Flags::FIN);

/// RFC 7323 §2.2: a SYN with the window scale option is answered with the option, even if our own shift is 0.
#[test]
fn syn_ack_offers_window_scale_of_zero() {
    let profile = profile("default").with(|it| it.handshake.window_scale = Some(0));
    let options = SocketOptions { recv_buffer: Some(60_000), ..SocketOptions::of(&profile) };
    let mut test = TestHost::new("newreno", profile);
    let answer = test.open(options, Options { window_scale: Some(7), ..mss(1460) });
    assert_eq!(answer.options.window_scale, Some(0));
}

/// A host may process several packets before its first transmission. An ACK of a SYN that has not been sent
/// yet is refused.
#[test]
fn ack_of_unsent_syn_is_refused() {
    // A host with the same seed uses the same initial sequence number.
    let iss = TestHost::syn_sent("newreno", profile("default")).iss();
    let mut test = TestHost::new("newreno", profile("default"));
    test.open_active(SocketOptions::of(&profile("default")));
    test.set_iss(iss);
    test.deliver(Flags::SYN.with(ACK), 0, 1, 1000, 0);
    assert_eq!(test.state(), State::SynSent);
    // Simultaneous open: the peer's SYN arrives, then an ACK of our SYN before our SYN,ACK has left.
    test.deliver(Flags::SYN, 0, 0, 1000, 0);
    test.deliver(ACK, 1, 1, 1000, 0);
    assert_eq!(test.state(), State::SynReceived);
    assert!(test.out().iter().any(|o| o.flags.contains(Flags::SYN)));
    test.segment(ACK, 1, 1, 1000, 0);
    assert_eq!(test.state(), State::Established);
}

/// RFC 9293 §3.10.7.4: in SYN-RECEIVED an unacceptable segment is answered with an ACK.
#[test]
fn syn_received_acks_unacceptable_segment() {
    let profile = profile("default");
    let mut test = TestHost::new("newreno", profile.clone());
    test.open(SocketOptions::of(&profile), mss(1460));
    let replies = test.segment(ACK, 5_000_000, 1, 1000, 10);
    assert_eq!(replies.len(), 1);
    assert_eq!((replies[0].flags, replies[0].seq, replies[0].ack), (ACK, 1, 1));
}

/// RFC 9293 §3.10.4: after CLOSE in SYN-RECEIVED, the FIN is sent once any segment establishes the
/// connection. Later writes fail.
#[test]
fn shutdown_in_syn_received_sends_fin_once_established() {
    for last in [Flags::SYN.with(ACK), ACK] {
        let mut test = TestHost::syn_sent("newreno", profile("default"));
        test.options = mss(1460);
        test.segment(Flags::SYN, 0, 0, 1000, 0);
        assert_eq!(test.state(), State::SynReceived);
        test.enqueue(5);
        let id = test.id.unwrap();
        test.host.shutdown_write(id).unwrap();
        assert_eq!(test.host.write(test.now, id, b"more"), Err(IoError::Closed));
        let seq = u64::from(last == ACK);
        let out = test.segment(last, seq, 1, 1000, 0);
        assert!(out.iter().any(|o| o.flags.contains(Flags::FIN) && o.len == 5), "{out:?}");
        assert_eq!(test.state(), State::FinWait1);
        test.segment(ACK, 1, 7, 1000, 0);
        assert_eq!(test.state(), State::FinWait2);
    }
}

/// Data that a write has accepted is sent, even if the application shuts down writing, or closes, before the
/// handshake is complete (RFC 9293 §3.9.1.4: several SENDs, then CLOSE).
#[test]
fn data_written_before_handshake_is_sent_after_close() {
    for (close, profile_name) in [false, true].into_iter().flat_map(|close| PROFILES.map(|p| (close, p))) {
        let mut test = TestHost::syn_sent("newreno", profile(profile_name));
        assert!(test.write(5).is_empty());
        let early = if close { test.close() } else { test.shutdown_write() };
        assert!(early.is_empty(), "{profile_name}: nothing is sent before the SYN,ACK");
        let out = test.segment(Flags::SYN.with(ACK), 0, 1, 65_535, 0);
        let text = out.last().unwrap();
        assert_eq!((text.seq, text.len), (1, 5), "{profile_name}: {out:?}");
        assert!(text.flags.contains(Flags::FIN), "{profile_name}: {out:?}");
        assert!(test.segment(ACK, 1, 7, 65_535, 0).is_empty());
        test.segment(FIN, 1, 7, 65_535, 0);
        assert_eq!(test.host.in_time_wait(), 1, "{profile_name}");
    }
}

/// A half-close does not affect the receiving direction. The FIN waits for the handshake, and data from the
/// peer is accepted.
#[test]
fn shutdown_write_in_syn_sent_keeps_reading_open() {
    for simultaneous in [false, true] {
        let mut test = TestHost::syn_sent("newreno", profile("default"));
        assert!(test.shutdown_write().is_empty());
        assert_eq!(test.state(), State::SynSent);
        let out = match simultaneous {
            false => test.segment(Flags::SYN.with(ACK), 0, 1, 65_535, 0),
            true => {
                let answer = test.segment(Flags::SYN, 0, 0, 65_535, 0);
                assert!(answer[0].flags.contains(Flags::SYN.with(ACK)), "{answer:?}");
                test.segment(ACK, 1, 1, 65_535, 0)
            }
        };
        assert!(out.last().is_some_and(|out| out.flags.contains(Flags::FIN) && out.seq == 1), "{out:?}");
        test.segment(ACK, 1, 2, 65_535, 10);
        let id = test.id.unwrap();
        assert_eq!(test.host.read(id, &mut [0; 100]), Ok(10), "simultaneous {simultaneous}");
    }
}

/// CLOSE in SYN-SENT without written data deletes the connection (RFC 9293 §3.10.4).
#[test]
fn close_in_syn_sent_deletes_empty_connection() {
    let mut test = TestHost::syn_sent("newreno", profile("default"));
    assert!(test.close().is_empty());
    assert_eq!(test.host.connections(), 0);
}

/// After a close during the handshake no application reads the data of a SYN,ACK, so it is not acknowledged.
#[test]
fn syn_ack_data_after_close_is_not_acknowledged() {
    let mut test = TestHost::syn_sent("newreno", profile("default"));
    test.write(5);
    test.close();
    let out = test.segment(Flags::SYN.with(ACK), 0, 1, 65_535, 10);
    assert!(out.iter().all(|out| out.ack == 1), "{out:?}");
    let out = test.segment(ACK, 1, 7, 65_535, 10);
    assert!(out.len() == 1 && out[0].flags.contains(Flags::RST), "{out:?}");
}
