//! Regression tests. Each names the rule that was broken.

use airtcp::host::IoError;
use airtcp::tcp::{KeepAlive, SocketOptions, State};
use airtcp_testkit::pair::{LEFT, RIGHT};
use airwire::options::{Options, SackBlocks};
use airwire::segment::{Ecn, Flags};
use airwire::time::Duration;

use super::hand::{Hand, mss, with_timestamps};
use super::world::{PROFILES, VARIANTS, profile};

const ACK: Flags = Flags::ACK;
const FIN: Flags = Flags::ACK.with(Flags::FIN);
const HOUR: Duration = Duration::from_secs(3600);

/// A connection to a peer with a receive window of `window`, without other options than the MSS.
fn connected(recipe: &str, profile_name: &str, window: u16) -> Hand {
    let profile = profile(profile_name);
    let options = SocketOptions::of(&profile);
    let mut hand = Hand::new(recipe, profile);
    hand.connect(options, mss(1460), window);
    hand
}

/// RFC 9293 §3.8.6.1: while the peer answers probes, a closed window must not end the connection, even if
/// data beyond the window is in flight. That data leaves as soon as the window opens, not when the backed-off
/// timer expires.
#[test]
fn zero_window_with_data_in_flight_keeps_connection() {
    for (recipe, profile_name) in VARIANTS.iter().flat_map(|r| PROFILES.map(|p| (r, p))) {
        let mut hand = connected(recipe, profile_name, 65_535);
        assert!(!hand.write(5000).is_empty());
        let until = hand.now + HOUR * 10;
        while hand.now < until {
            for _ in hand.next() {
                assert!(hand.segment(ACK, 1, 1, 0, 0).len() <= 1);
            }
            assert_eq!(hand.state(), State::Established, "{recipe} {profile_name} at {}", hand.now);
        }
        // The window opens: the data is sent, and timeouts during the closed window do not count.
        let out = hand.segment(ACK, 1, 1, 65_535, 0);
        assert!(out.iter().any(|o| o.seq == 1 && o.len > 0), "{recipe} {profile_name}: {out:?}");
        hand.wait(Duration::from_secs(240));
        assert_eq!(hand.state(), State::Established, "{recipe} {profile_name}");
        // A peer that stops answering is given up as usual.
        hand.wait(HOUR * 10);
        assert_eq!(hand.state(), State::Closed, "{recipe} {profile_name}");
    }
}

/// RFC 9293 §3.8.6: data that a closed window refused is sent when the window opens, as fast as ACKs arrive,
/// with every loss detector. Answers to probes do not trigger any transmission.
#[test]
fn refused_data_is_sent_when_window_opens() {
    let others = [
        "sack+rack",
        "sack+pr",
        "sack+frto",
        "newreno+eifel",
        "newreno+fast-timeout",
        "sack+dsack",
        "sack+prr",
    ];
    let recipes = VARIANTS.into_iter().chain(others);
    for (recipe, profile_name) in recipes.flat_map(|r| PROFILES.map(|p| (r, p))) {
        for timeouts in [0, 1, 3] {
            let what = format!("{recipe} {profile_name} {timeouts}");
            let profile = profile(profile_name);
            let options = SocketOptions::of(&profile);
            let mut hand = Hand::new(recipe, profile);
            hand.connect(options, Options { sack_permitted: true, ..mss(1460) }, 65_535);
            assert!(!hand.write(5000).is_empty());
            for _ in 0..4 {
                assert!(hand.segment(ACK, 1, 1, 0, 0).is_empty(), "{what}");
            }
            for _ in 0..timeouts {
                while hand.next().is_empty() {}
                assert!(hand.segment(ACK, 1, 1, 0, 0).is_empty(), "{what}");
            }
            let mut out = hand.segment(ACK, 1, 1, 65_535, 0);
            let mut next = 1;
            while !out.is_empty() {
                next = out.iter().fold(next, |next, text| match text.seq <= next {
                    true => next.max(text.seq + text.len),
                    false => next,
                });
                out = hand.segment(ACK, 1, next, 65_535, 0);
            }
            assert_eq!(next, 5001, "{what}");
        }
    }
}

/// RFC 9293 §3.8.6.2.1 (4): a small window is filled after the override timeout. The sender must not send one
/// byte per probe, and must not stall.
#[test]
fn small_window_is_filled_after_override_timeout() {
    for profile_name in PROFILES {
        let mut hand = connected("newreno", profile_name, 65_535);
        hand.write(1000);
        // The window is 300 bytes after it was 64 KiB.
        assert!(hand.segment(ACK, 1, 1001, 300, 0).is_empty());
        assert!(
            hand.write(3000).is_empty(),
            "{profile_name}: a small segment left before the override timeout"
        );
        let mut acked = 1001;
        let begin = hand.now;
        while acked < 4001 {
            for out in hand.next() {
                assert!(out.len <= 300, "{profile_name}: {out:?}");
                acked = acked.max(out.seq + out.len);
            }
            hand.segment(ACK, 1, acked, 300, 0);
            assert!(hand.now - begin < Duration::from_secs(30), "{profile_name}: {acked}");
        }
    }
}

/// RFC 9293 §3.8.6.1: a probe carries a byte that the application has written. Once the last such byte is
/// accepted, there is nothing left to probe with. The host must not make up a byte or a FIN.
#[test]
fn window_probe_never_sends_unwritten_byte() {
    let mut hand = connected("newreno", "default", 0);
    assert!(hand.write(1).is_empty());
    let probe = hand.next();
    assert_eq!((probe.len(), probe[0].seq, probe[0].len), (1, 1, 1));
    hand.segment(ACK, 1, 2, 0, 0);
    let out = hand.wait(HOUR);
    assert!(out.is_empty(), "{out:?}");
    assert!(hand.write(10).is_empty());
    let out = hand.segment(ACK, 1, 2, 1000, 0);
    assert!(
        out.len() == 1 && out[0].seq == 2 && out[0].len == 10 && !out[0].flags.contains(Flags::FIN),
        "{out:?}"
    );
}

/// RFC 7323 §2.4: a window that was rounded up to its unit must not be rounded up again with every ACK.
#[test]
fn scaled_window_closes_despite_tiny_segments() {
    let profile = profile("default");
    let options = SocketOptions { recv_buffer: Some(1000), ..SocketOptions::of(&profile) };
    let mut hand = Hand::new("newreno", profile);
    hand.connect(options, Options { window_scale: Some(7), ..mss(1460) }, 65_535);
    let mut next = 1;
    loop {
        let edge = next;
        let mut replies = hand.segment(ACK, next, 1, 65_535, 1);
        replies.extend(hand.wait(Duration::from_millis(100)));
        let last = replies.last().unwrap();
        assert!(last.ack > edge, "a byte inside the window was refused");
        next = last.ack;
        if last.window == 0 {
            break;
        }
        assert!(next < 1 + 1000 + 256, "{next} bytes in a buffer of 1000");
    }
    assert!(next > 900, "closed after only {next} bytes");
    assert_eq!(hand.connection().readable() as u64, next - 1);
}

/// RFC 9293 §3.4: a FIN occupies a sequence number, which must be inside the window.
#[test]
fn fin_waits_for_window() {
    for profile_name in PROFILES {
        let mut hand = connected("newreno", profile_name, 1000);
        let id = hand.id.unwrap();
        hand.host.write(hand.now, id, &[0; 1000]).unwrap();
        hand.host.shutdown_write(id).unwrap();
        let out = hand.out();
        let fills = out.iter().map(|out| out.len).sum::<u64>() == 1000;
        assert!(fills && out.iter().all(|out| !out.flags.contains(Flags::FIN)), "{profile_name}: {out:?}");
        assert!(hand.segment(ACK, 1, 1001, 0, 0).is_empty());
        let probes = hand.wait(Duration::from_secs(60));
        assert!(!probes.is_empty(), "{profile_name}: no window probe was sent");
        let mut out = hand.segment(ACK, 1, 1001, 1000, 0);
        out.extend(hand.wait(Duration::from_secs(120)));
        assert!(out.iter().any(|o| o.flags.contains(Flags::FIN) && o.seq == 1001), "{profile_name}: {out:?}");
        hand.segment(ACK, 1, 1002, 1000, 0);
        assert_eq!(hand.state(), State::FinWait2);
    }
}

/// A full-sized segment with a FIN is one byte longer than the loss window, and must still be retransmitted.
#[test]
fn full_segment_with_fin_is_retransmitted() {
    for recipe in VARIANTS {
        for profile_name in PROFILES {
            let mut hand = connected(recipe, profile_name, 65_535);
            let id = hand.id.unwrap();
            hand.host.write(hand.now, id, &[0; 1460]).unwrap();
            hand.host.shutdown_write(id).unwrap();
            assert_eq!(hand.out().len(), 1);
            let again = hand.wait(Duration::from_secs(10));
            assert!(again.len() > 1, "{recipe} {profile_name}: {again:?}");
        }
    }
}

/// RFC 1191 §6.4: after "packet too big", data in flight is split into smaller segments, even if the window
/// is only one such segment.
#[test]
fn packet_too_big_splits_segments_after_timeout() {
    for recipe in VARIANTS {
        let mut hand = connected(recipe, "default", 65_535);
        hand.write(5000);
        assert!(!hand.next().is_empty(), "a timeout");
        let packet = too_big(&hand, 576);
        hand.host.handle_packet(hand.now, &packet);
        let mut out = hand.out();
        out.extend(hand.wait(Duration::from_secs(20)));
        assert!(out.iter().any(|o| o.seq == 1) && out.iter().all(|o| o.len <= 536), "{recipe}: {out:?}");
    }
}

/// An ICMP "packet too big" error that quotes the first segment in flight.
fn too_big(hand: &Hand, mtu: u16) -> Vec<u8> {
    use airwire::checksum;
    let mut quote = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    quote.extend(40_000_u16.to_be_bytes());
    quote.extend(80_u16.to_be_bytes());
    quote.extend(hand.wire(1).0.to_be_bytes());
    let mut message = vec![3, 4, 0, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend(quote);
    let sum = checksum::plain(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut packet =
        vec![0x45, 0, 0, 20 + message.len() as u8, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 2, 192, 0, 2, 1];
    let sum = checksum::plain(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(message);
    packet
}

/// RFC 7323 §2.2: a SYN with the window scale option is answered with the option, even if our own shift is 0.
#[test]
fn syn_ack_offers_window_scale_of_zero() {
    let mut profile = profile("default");
    profile.handshake.window_scale = Some(0);
    let options = SocketOptions { recv_buffer: Some(60_000), ..SocketOptions::of(&profile) };
    let mut hand = Hand::new("newreno", profile);
    let answer = hand.open(options, Options { window_scale: Some(7), ..mss(1460) });
    assert_eq!(answer.options.window_scale, Some(0));
}

/// A host may take in several packets before it sends. An ACK of a SYN that has not been sent yet is refused.
#[test]
fn ack_of_unsent_syn_is_refused() {
    let profile = profile("default");
    let mut hand = Hand::new("newreno", profile.clone());
    // Learn the initial sequence number from another host with the same seed.
    hand.connect(SocketOptions::of(&profile), mss(1460), 1000);
    let iss = hand.iss();
    let mut hand = Hand::new("newreno", profile.clone());
    let (local, remote) = ((LEFT, 40_000).into(), (RIGHT, 80).into());
    let id = hand.host.connect(hand.now, Some(local), remote, SocketOptions::of(&profile)).unwrap();
    hand.id = Some(id);
    hand.set_iss(iss);
    hand.put(Flags::SYN.with(ACK), 0, 1, 1000, 0);
    assert_eq!(hand.state(), State::SynSent);
    // Simultaneous open: the peer's SYN arrives, then an ACK of our SYN before our SYN,ACK has left.
    hand.put(Flags::SYN, 0, 0, 1000, 0);
    hand.put(ACK, 1, 1, 1000, 0);
    assert_eq!(hand.state(), State::SynReceived);
    assert!(hand.out().iter().any(|o| o.flags.contains(Flags::SYN)));
    hand.segment(ACK, 1, 1, 1000, 0);
    assert_eq!(hand.state(), State::Established);
}

/// RFC 9293 §3.10.4: after CLOSE in SYN-RECEIVED, the FIN is sent once the connection is established,
/// whichever segment establishes it. Later writes fail.
#[test]
fn shutdown_in_syn_received_sends_fin_once_established() {
    for last in [Flags::SYN.with(ACK), ACK] {
        let profile = profile("default");
        let mut hand = Hand::new("newreno", profile.clone());
        let (local, remote) = ((LEFT, 40_000).into(), (RIGHT, 80).into());
        let id = hand.host.connect(hand.now, Some(local), remote, SocketOptions::of(&profile)).unwrap();
        hand.id = Some(id);
        hand.out();
        hand.options = mss(1460);
        hand.segment(Flags::SYN, 0, 0, 1000, 0);
        assert_eq!(hand.state(), State::SynReceived);
        hand.host.write(hand.now, id, b"hello").unwrap();
        hand.host.shutdown_write(id).unwrap();
        assert_eq!(hand.host.write(hand.now, id, b"more"), Err(IoError::Closed));
        let seq = u64::from(last == ACK);
        let out = hand.segment(last, seq, 1, 1000, 0);
        assert!(out.iter().any(|o| o.flags.contains(Flags::FIN) && o.len == 5), "{out:?}");
        assert_eq!(hand.state(), State::FinWait1);
        hand.segment(ACK, 1, 7, 1000, 0);
        assert_eq!(hand.state(), State::FinWait2);
    }
}

/// RFC 9293 §3.10.7.4: data beyond the peer's FIN is ignored. It must not end a connection that still sends.
#[test]
fn data_beyond_fin_is_ignored_in_last_ack() {
    let mut hand = connected("newreno", "default", 65_535);
    let id = hand.id.unwrap();
    hand.segment(FIN, 1, 1, 65_535, 0);
    assert_eq!(hand.state(), State::CloseWait);
    hand.host.write(hand.now, id, &[0; 1000]).unwrap();
    hand.host.close(hand.now, id);
    hand.out();
    assert_eq!(hand.state(), State::LastAck);
    let replies = hand.segment(ACK, 2, 1, 65_535, 100);
    assert!(replies.iter().all(|o| !o.flags.contains(Flags::RST)), "{replies:?}");
    assert_eq!(hand.state(), State::LastAck);
    assert!(!hand.next().is_empty(), "the data is still retransmitted");
}

/// A FIN below data that has already arrived is ignored.
#[test]
fn fin_below_received_data_is_ignored() {
    let mut hand = connected("newreno", "default", 65_535);
    hand.segment(ACK, 101, 1, 65_535, 100);
    hand.segment(FIN, 51, 1, 65_535, 0);
    hand.segment(ACK, 1, 1, 65_535, 100);
    assert_eq!((hand.state(), hand.connection().readable()), (State::Established, 200));
    hand.segment(FIN, 201, 1, 65_535, 0);
    assert_eq!(hand.state(), State::CloseWait);
}

/// RFC 6191: a new SYN ends TIME-WAIT, but the application can still read what it has not read yet.
#[test]
fn time_wait_data_stays_readable_after_new_syn() {
    let profile = profile("default");
    let options = SocketOptions::of(&profile);
    let mut hand = Hand::new("newreno", profile);
    hand.open(options, mss(1460));
    hand.segment(ACK, 1, 1, 1000, 0);
    hand.accept();
    let id = hand.id.unwrap();
    hand.host.shutdown_write(id).unwrap();
    hand.out();
    hand.segment(FIN, 1, 2, 1000, 10);
    assert_eq!(hand.state(), State::TimeWait);
    hand.options = mss(1460);
    let replies = hand.segment(Flags::SYN, 100_000, 0, 1000, 0);
    assert!(replies.iter().any(|o| o.flags.contains(Flags::SYN)), "{replies:?}");
    let mut buffer = [0; 20];
    assert_eq!(hand.host.read(id, &mut buffer), Ok(10));
    assert_eq!(hand.host.read(id, &mut buffer), Ok(0));
    hand.host.close(hand.now, id);
    hand.out();
    assert_eq!(hand.host.connections(), 1, "only the new connection remains");
}

/// RFC 3168 §6.1.2: CWR is set after any reduction. Otherwise the next ECN echo reduces the window again.
#[test]
fn cwr_is_set_after_loss() {
    let profile = profile("default");
    let options = SocketOptions::of(&profile);
    let mut hand = Hand::new("newreno+ecn", profile);
    let id = hand.host.connect(hand.now, Some((LEFT, 40_000).into()), (RIGHT, 80).into(), options).unwrap();
    hand.id = Some(id);
    hand.out();
    hand.options = mss(1460);
    hand.segment(Flags::SYN.with(ACK).with(Flags::ECE), 0, 1, 65_535, 0);
    hand.options = Options::default();
    hand.ecn = Ecn::NotEct;
    assert_eq!(hand.write(14_600).len(), 10);
    for _ in 0..3 {
        hand.segment(ACK, 1, 1, 65_535, 0);
    }
    hand.host.write(hand.now, id, &[0; 14_600]).unwrap();
    let new = hand.segment(ACK, 1, 14_601, 65_535, 0);
    let cwr: Vec<bool> = new.iter().map(|o| o.flags.contains(Flags::CWR)).collect();
    assert!(cwr[0] && !cwr[1..].contains(&true), "{cwr:?}");
}

/// RFC 7323 §5.5: a TS.Recent that is older than 24 days is invalid. No segment is refused because of it, and
/// the next timestamp replaces it.
#[test]
fn outdated_ts_recent_does_not_refuse_segments() {
    let profile = profile("default");
    let options = SocketOptions::of(&profile);
    let mut hand = Hand::new("newreno", profile);
    hand.connect(options, with_timestamps(mss(1460), 0x7000_0000), 65_535);
    let echo = |out: &[super::hand::Out]| out.last().and_then(|o| o.options.timestamps).map(|ts| ts.ecr);
    hand.options = with_timestamps(Options::default(), 0x6fff_ffff);
    hand.segment(ACK, 1, 1, 65_535, 10);
    assert_eq!(hand.connection().readable(), 0, "the old timestamp is refused");
    hand.now += Duration::from_secs(25 * 24 * 3600);
    let mut out = hand.segment(ACK, 1, 1, 65_535, 10);
    out.extend(hand.wait(Duration::from_secs(1)));
    assert_eq!((hand.connection().readable(), echo(&out)), (10, Some(0x6fff_ffff)));
}

/// The ACK of the original was lost, and a retransmission arrives. The default profile and Linux echo the
/// timestamp of the retransmission, so that the sender can attribute the ACK to it (RFC 7323 §4.3). FreeBSD
/// echoes the old timestamp. A forged copy with a timestamp from the future must not make later segments look
/// old, except in Linux, which stores the timestamp (tcp_replace_ts_recent()).
#[test]
fn ack_of_retransmission_echoes_timestamp_per_profile() {
    let echo = |out: &[super::hand::Out]| out.last().and_then(|o| o.options.timestamps).map(|ts| ts.ecr);
    for (name, echoed) in [("default", 1100), ("linux", 1100), ("freebsd", 100)] {
        let mut hand = Hand::new("newreno", profile(name));
        hand.connect(SocketOptions::of(&profile(name)), with_timestamps(mss(1460), 90), 65_535);
        hand.options = with_timestamps(Options::default(), 100);
        hand.segment(ACK, 1, 1, 65_535, 1000);
        hand.wait(Duration::from_secs(1));
        hand.options = with_timestamps(Options::default(), 1100);
        assert_eq!(echo(&hand.segment(ACK, 1, 1, 65_535, 1000)), Some(echoed), "{name}");
        hand.options = with_timestamps(Options::default(), 0x4000_0000);
        hand.segment(ACK, 1, 1, 65_535, 1000);
        hand.options = with_timestamps(Options::default(), 1150);
        let mut out = hand.segment(ACK, 1001, 1, 65_535, 1000);
        out.extend(hand.wait(Duration::from_secs(1)));
        let result = if name == "linux" { (1000, Some(0x4000_0000)) } else { (2000, Some(1150)) };
        assert_eq!((hand.connection().readable(), echo(&out)), result, "{name}");
    }
}

/// Keep-alive that is enabled on an idle connection.
#[test]
fn keepalive_starts_when_enabled_on_idle_connection() {
    let mut hand = connected("newreno", "default", 65_535);
    let keepalive = KeepAlive { idle: HOUR, interval: Duration::from_secs(75), probes: 3 };
    let options = SocketOptions { keepalive: Some(keepalive), ..hand.connection().options().clone() };
    hand.host.set_options(hand.now, hand.id.unwrap(), options);
    hand.out();
    let out = hand.wait(HOUR * 2);
    assert_eq!(out.len(), 4, "three probes and a reset: {out:?}");
    assert_eq!(hand.state(), State::Closed);
}

/// A receiver that SACKs single bytes must not make the scoreboard grow without bound.
#[test]
fn scoreboard_has_no_more_ranges_than_segments() {
    let mut hand = Hand::new("sack", profile("default"));
    let options = SocketOptions::of(&profile("default"));
    hand.connect(options, Options { sack_permitted: true, ..mss(1460) }, 65_535);
    assert_eq!(hand.write(14_600).len(), 10);
    for i in 0..3000 {
        let mut sack = SackBlocks::default();
        let left = 14_000 - 4 * i;
        sack.push(hand.wire(left), hand.wire(left + 1));
        hand.options.sack = sack;
        hand.segment(ACK, 1, 1, 65_535, 0);
    }
    let pieces = hand.connection().flight().sacked_ranges().len();
    assert!(pieces <= hand.connection().flight().len() + 1, "{pieces} ranges");
}

/// RFC 9293 §3.10.7.4: with a closed window data is refused, but the ACK is processed, even an ACK of our
/// FIN.
#[test]
fn refused_segment_still_acknowledges_fin() {
    let profile = profile("default");
    let options = SocketOptions { recv_buffer: Some(0), ..SocketOptions::of(&profile) };
    let mut hand = Hand::new("newreno", profile);
    hand.connect(options, mss(1460), 65_535);
    hand.host.shutdown_write(hand.id.unwrap()).unwrap();
    hand.out();
    assert_eq!(hand.state(), State::FinWait1);
    hand.segment(ACK, 1, 2, 65_535, 100);
    assert_eq!((hand.state(), hand.connection().readable()), (State::FinWait2, 0));
}

/// RFC 9293 §3.10.7.4: in SYN-RECEIVED an unacceptable segment is answered with an ACK.
#[test]
fn syn_received_acks_unacceptable_segment() {
    let profile = profile("default");
    let mut hand = Hand::new("newreno", profile.clone());
    hand.open(SocketOptions::of(&profile), mss(1460));
    let replies = hand.segment(ACK, 5_000_000, 1, 1000, 10);
    assert_eq!(replies.len(), 1);
    assert_eq!((replies[0].flags, replies[0].seq, replies[0].ack), (ACK, 1, 1));
}

/// Data that a write has accepted is sent, even if the application shuts down writing, or closes, before the
/// handshake is complete (RFC 9293 §3.9.1.4: several SENDs, then CLOSE).
#[test]
fn data_written_before_handshake_is_sent_after_close() {
    for (close, profile_name) in [false, true].into_iter().flat_map(|close| PROFILES.map(|p| (close, p))) {
        let profile = profile(profile_name);
        let options = SocketOptions::of(&profile);
        let mut hand = Hand::new("newreno", profile);
        let to = (RIGHT, 80).into();
        let id = hand.host.connect(hand.now, Some((LEFT, 40_000).into()), to, options).unwrap();
        assert_eq!(hand.out().len(), 1);
        assert_eq!(hand.host.write(hand.now, id, b"hello"), Ok(5));
        match close {
            true => hand.host.close(hand.now, id),
            false => hand.host.shutdown_write(id).unwrap(),
        }
        assert!(hand.out().is_empty(), "{profile_name}: nothing is sent before the SYN,ACK");
        let out = hand.segment(Flags::SYN.with(ACK), 0, 1, 65_535, 0);
        let text = out.last().unwrap();
        assert_eq!((text.seq, text.len), (1, 5), "{profile_name}: {out:?}");
        assert!(text.flags.contains(Flags::FIN), "{profile_name}: {out:?}");
        assert!(hand.segment(ACK, 1, 7, 65_535, 0).is_empty());
        hand.segment(FIN, 1, 7, 65_535, 0);
        assert_eq!(hand.host.in_time_wait(), 1, "{profile_name}");
    }
}

/// A half-close does not affect the receiving direction. The FIN waits for the handshake, and data from the
/// peer is accepted.
#[test]
fn shutdown_write_in_syn_sent_keeps_reading_open() {
    for simultaneous in [false, true] {
        let profile = profile("default");
        let options = SocketOptions::of(&profile);
        let mut hand = Hand::new("newreno", profile);
        let (from, to) = ((LEFT, 40_000).into(), (RIGHT, 80).into());
        let id = hand.host.connect(hand.now, Some(from), to, options).unwrap();
        hand.id = Some(id);
        assert_eq!(hand.out().len(), 1);
        hand.host.shutdown_write(id).unwrap();
        assert_eq!((hand.state(), hand.out().len()), (State::SynSent, 0));
        let out = match simultaneous {
            false => hand.segment(Flags::SYN.with(ACK), 0, 1, 65_535, 0),
            true => {
                let answer = hand.segment(Flags::SYN, 0, 0, 65_535, 0);
                assert!(answer[0].flags.contains(Flags::SYN.with(ACK)), "{answer:?}");
                hand.segment(ACK, 1, 1, 65_535, 0)
            }
        };
        assert!(out.last().is_some_and(|out| out.flags.contains(Flags::FIN) && out.seq == 1), "{out:?}");
        hand.segment(ACK, 1, 2, 65_535, 10);
        assert_eq!(hand.host.read(id, &mut [0; 100]), Ok(10), "simultaneous {simultaneous}");
    }
}

/// CLOSE in SYN-SENT without written data deletes the connection (RFC 9293 §3.10.4).
#[test]
fn close_in_syn_sent_deletes_empty_connection() {
    let profile = profile("default");
    let mut hand = Hand::new("newreno", profile.clone());
    let to = (RIGHT, 80).into();
    let id = hand.host.connect(hand.now, None, to, SocketOptions::of(&profile)).unwrap();
    assert_eq!(hand.out().len(), 1);
    hand.host.close(hand.now, id);
    assert!(hand.out().is_empty());
    assert_eq!(hand.host.connections(), 0);
}

/// A segment that repeats data counts as a duplicate, whether or not D-SACK reports it.
#[test]
fn overlap_counts_as_duplicate_with_or_without_dsack() {
    for dsack in [true, false] {
        let profile = profile("linux").with(|it| it.acks.dsack = dsack);
        let options = SocketOptions::of(&profile);
        let mut hand = Hand::new("newreno", profile);
        hand.connect(options, Options { sack_permitted: true, ..mss(1460) }, 65_535);
        let duplicates = |hand: &Hand| hand.connection().statistics().duplicate_segments_in;
        hand.segment(ACK, 1, 1, 65_535, 100);
        // Segments with half old and half new data, beyond a hole, across the upper edge of the data beyond
        // the hole, and with old data only.
        hand.segment(ACK, 51, 1, 65_535, 100);
        assert_eq!(duplicates(&hand), 1, "D-SACK {dsack}");
        hand.segment(ACK, 501, 1, 65_535, 100);
        assert_eq!(duplicates(&hand), 1, "D-SACK {dsack}");
        hand.segment(ACK, 551, 1, 65_535, 100);
        assert_eq!(duplicates(&hand), 2, "D-SACK {dsack}");
        hand.segment(ACK, 1, 1, 65_535, 100);
        assert_eq!(duplicates(&hand), 3, "D-SACK {dsack}");
    }
}

/// After a close during the handshake no application reads the data of a SYN,ACK, so it is not acknowledged.
#[test]
fn syn_ack_data_after_close_is_not_acknowledged() {
    let profile = profile("default");
    let mut hand = Hand::new("newreno", profile.clone());
    let (from, to) = ((LEFT, 40_000).into(), (RIGHT, 80).into());
    let id = hand.host.connect(hand.now, Some(from), to, SocketOptions::of(&profile)).unwrap();
    hand.out();
    hand.host.write(hand.now, id, b"hello").unwrap();
    hand.host.close(hand.now, id);
    let out = hand.segment(Flags::SYN.with(ACK), 0, 1, 65_535, 10);
    assert!(out.iter().all(|out| out.ack == 1), "{out:?}");
    let out = hand.segment(ACK, 1, 7, 65_535, 10);
    assert!(out.len() == 1 && out[0].flags.contains(Flags::RST), "{out:?}");
}
/// RFC 2018: a FIN that arrives before the data in front of it is part of the SACK block.
#[test]
fn early_fin_is_part_of_sack_block() {
    let mut hand = Hand::new("sack", profile("linux"));
    let options = SocketOptions::of(&profile("linux"));
    hand.connect(options, Options { sack_permitted: true, ..mss(1460) }, 65_535);
    let blocks = |out: &[super::hand::Out]| out.last().map(|out| out.options.sack.as_slice().len());
    assert_eq!(blocks(&hand.segment(FIN, 1001, 1, 65_535, 0)), Some(1), "the FIN alone");
    let out = hand.segment(ACK, 501, 1, 65_535, 500);
    let sack = out[0].options.sack.as_slice().to_vec();
    assert_eq!(sack.len(), 1);
    assert_eq!(sack[0].1.0.wrapping_sub(sack[0].0.0), 501, "500 bytes and the FIN");
    let out = hand.segment(ACK, 1, 1, 65_535, 500);
    assert_eq!((out[0].ack, hand.state()), (1002, State::CloseWait));
}

/// RFC 9293 §3.10.7.4, seventh step: in CLOSE-WAIT the segment text is ignored. A retransmitted FIN is
/// acknowledged.
#[test]
fn data_after_fin_is_ignored_in_close_wait() {
    for profile_name in PROFILES {
        let mut hand = connected("newreno", profile_name, 65_535);
        hand.segment(FIN, 1, 1, 65_535, 0);
        hand.wait(Duration::from_secs(1));
        assert_eq!(hand.segment(ACK, 2, 1, 65_535, 100).len(), 0, "{profile_name}");
        assert_eq!(hand.segment(FIN, 1, 1, 65_535, 0).len(), 1, "{profile_name}");
    }
}

/// RFC 9293 §3.10.5, §3.10.7.4: TIME-WAIT survives a close with unread data and late segments. An abort sends
/// no reset if all data was sent.
#[test]
fn time_wait_and_last_ack_send_no_reset() {
    let mut hand = connected("newreno", "linux", 65_535);
    let id = hand.id.unwrap();
    hand.host.shutdown_write(id).unwrap();
    hand.out();
    hand.segment(FIN, 1, 2, 65_535, 100);
    assert_eq!(hand.state(), State::TimeWait);
    hand.host.close(hand.now, id);
    assert!(hand.out().is_empty());
    let out = hand.segment(FIN, 101, 2, 65_535, 0);
    assert!(out.len() == 1 && !out[0].flags.contains(Flags::RST), "{out:?}");

    let mut hand = connected("newreno", "linux", 65_535);
    let id = hand.id.unwrap();
    hand.segment(FIN, 1, 1, 65_535, 0);
    hand.host.shutdown_write(id).unwrap();
    hand.out();
    assert_eq!(hand.state(), State::LastAck);
    hand.host.abort(id);
    assert!(hand.out().is_empty());
}

/// RFC 9293 §3.6.1: after a close, the data missing in front of an early FIN will never be read, so the
/// answer is a reset.
#[test]
fn early_fin_after_close_triggers_reset() {
    let mut hand = connected("newreno", "linux", 65_535);
    let id = hand.id.unwrap();
    hand.host.close(hand.now, id);
    hand.out();
    let out = hand.segment(FIN, 101, 2, 65_535, 0);
    assert!(out.len() == 1 && out[0].flags.contains(Flags::RST), "{out:?}");
}

/// The profile `linux` imitates the kernel: segments of at most half the window.
#[test]
fn linux_limits_segment_size_to_half_the_window() {
    for (profile_name, largest) in [("default", 1000), ("linux", 500)] {
        let mut hand = connected("newreno", profile_name, 1000);
        let len = hand.write(3000).iter().map(|out| out.len).max();
        assert_eq!(len, Some(largest), "{profile_name}");
    }
}
