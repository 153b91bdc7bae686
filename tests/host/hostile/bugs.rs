//! What went wrong once. Each test names the rule that was broken.

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

/// A plain connection from the host to a peer with a window of `window`.
fn connected(recipe: &str, profile_name: &str, window: u16) -> Hand {
    let profile = profile(profile_name);
    let options = SocketOptions::of(&profile);
    let mut hand = Hand::new(recipe, profile);
    hand.connect(options, mss(1460), window);
    hand
}

/// RFC 9293 §3.8.6.1: as long as the peer answers, a closed window ends nothing, also if it closed in front
/// of data already sent. That leaves as soon as the window opens, not when the backed-off timer fires.
#[test]
fn a_window_closed_in_front_of_data_in_flight_is_waited_for() {
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
        // The window opens: the data comes, and the timeouts of the closed window do not count any more.
        let out = hand.segment(ACK, 1, 1, 65_535, 0);
        assert!(out.iter().any(|o| o.seq == 1 && o.len > 0), "{recipe} {profile_name}: {out:?}");
        hand.wait(Duration::from_secs(240));
        assert_eq!(hand.state(), State::Established, "{recipe} {profile_name}");
        // A peer that does not answer any more is given up as ever.
        hand.wait(HOUR * 10);
        assert_eq!(hand.state(), State::Closed, "{recipe} {profile_name}");
    }
}

/// RFC 9293 §3.8.6: what a window refused that closed in front of it leaves when the window opens, all of it as fast as
/// ACKs come in, whoever decides what is lost; and answers to probes are no reason to send anything.
#[test]
fn what_a_closed_window_has_refused_waits_for_no_timer_when_it_opens() {
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

/// RFC 9293 §3.8.6.2.1 (4): what a small window has room for leaves after the override timeout, not one octet
/// per probe, nor never.
#[test]
fn a_window_that_stays_small_is_used() {
    for profile_name in PROFILES {
        let mut hand = connected("newreno", profile_name, 65_535);
        hand.write(1000);
        // 300 octets a time, where there were 64 KiB before.
        assert!(hand.segment(ACK, 1, 1001, 300, 0).is_empty());
        assert!(hand.write(3000).is_empty(), "{profile_name}: a silly segment at once");
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

/// RFC 9293 §3.8.6.1: a probe carries an octet that was written, and when that was the last one, there is nothing
/// to probe for: not even with an octet, or a FIN, that nobody wrote.
#[test]
fn an_accepted_probe_is_not_followed_by_an_octet_that_nobody_wrote() {
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

/// RFC 7323 §2.4: a window rounded up to its unit must not be rounded up again with every ACK.
#[test]
fn a_scaled_window_closes_although_segments_are_tiny() {
    let profile = profile("default");
    let options = SocketOptions { recv_buffer: 1000, ..SocketOptions::of(&profile) };
    let mut hand = Hand::new("newreno", profile);
    hand.connect(options, Options { window_scale: Some(7), ..mss(1460) }, 65_535);
    let mut next = 1;
    loop {
        let edge = next;
        let mut replies = hand.segment(ACK, next, 1, 65_535, 1);
        replies.extend(hand.wait(Duration::from_millis(100)));
        let last = replies.last().unwrap();
        assert!(last.ack > edge, "an octet inside the window was refused");
        next = last.ack;
        if last.window == 0 {
            break;
        }
        assert!(next < 1 + 1000 + 256, "{next} octets in a buffer of 1000");
    }
    assert!(next > 900, "closed after {next} octets already");
    assert_eq!(hand.connection().readable() as u64, next - 1);
}

/// RFC 9293 §3.4: a FIN has a sequence number, which has to lie in the window.
#[test]
fn a_fin_waits_for_the_window() {
    for profile_name in PROFILES {
        let mut hand = connected("newreno", profile_name, 1000);
        let id = hand.id.unwrap();
        hand.host.write(hand.now, id, &[0; 1000]).unwrap();
        hand.host.shutdown_write(hand.now, id).unwrap();
        let out = hand.out();
        let fills = out.iter().map(|out| out.len).sum::<u64>() == 1000;
        assert!(fills && out.iter().all(|out| !out.flags.contains(Flags::FIN)), "{profile_name}: {out:?}");
        assert!(hand.segment(ACK, 1, 1001, 0, 0).is_empty());
        let probes = hand.wait(Duration::from_secs(60));
        assert!(!probes.is_empty(), "{profile_name}: nobody asks for the window");
        let mut out = hand.segment(ACK, 1, 1001, 1000, 0);
        out.extend(hand.wait(Duration::from_secs(120)));
        assert!(out.iter().any(|o| o.flags.contains(Flags::FIN) && o.seq == 1001), "{profile_name}: {out:?}");
        hand.segment(ACK, 1, 1002, 1000, 0);
        assert_eq!(hand.state(), State::FinWait2);
    }
}

/// A full-sized segment that carries the FIN is one octet longer than the loss window, and still leaves.
#[test]
fn a_full_segment_with_a_fin_is_sent_again() {
    for recipe in VARIANTS {
        for profile_name in PROFILES {
            let mut hand = connected(recipe, profile_name, 65_535);
            let id = hand.id.unwrap();
            hand.host.write(hand.now, id, &[0; 1460]).unwrap();
            hand.host.shutdown_write(hand.now, id).unwrap();
            assert_eq!(hand.out().len(), 1);
            let again = hand.wait(Duration::from_secs(10));
            assert!(again.len() > 1, "{recipe} {profile_name}: {again:?}");
        }
    }
}

/// RFC 1191 §6.4: after "too big", what is in flight is cut, also if the window is only one (smaller) segment.
#[test]
fn segments_shrink_with_the_path_after_a_timeout() {
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

/// An ICMP error that quotes the first segment in flight.
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

/// RFC 7323 §2.2: a SYN that offers scaling is answered with the option, also when our own shift is 0.
#[test]
fn a_shift_of_zero_is_an_answer() {
    let mut profile = profile("default");
    profile.window_scale = Some(0);
    let options = SocketOptions { recv_buffer: 60_000, ..SocketOptions::of(&profile) };
    let mut hand = Hand::new("newreno", profile);
    let answer = hand.open(options, Options { window_scale: Some(7), ..mss(1460) });
    assert_eq!(answer.options.window_scale, Some(0));
}

/// A host may take in several packets before it sends: what acknowledges a SYN that has not left is refused.
#[test]
fn nothing_acknowledges_a_syn_that_has_not_left() {
    let profile = profile("default");
    let mut hand = Hand::new("newreno", profile.clone());
    // Learn the initial number from a first run of the same host.
    hand.connect(SocketOptions::of(&profile), mss(1460), 1000);
    let iss = hand.iss();
    let mut hand = Hand::new("newreno", profile.clone());
    let (local, remote) = ((LEFT, 40_000).into(), (RIGHT, 80).into());
    let id = hand.host.connect(hand.now, Some(local), remote, SocketOptions::of(&profile)).unwrap();
    hand.id = Some(id);
    hand.set_iss(iss);
    hand.put(Flags::SYN.with(ACK), 0, 1, 1000, 0);
    assert_eq!(hand.state(), State::SynSent);
    // Both open: their SYN, and an ACK of ours before our SYN, ACK has left.
    hand.put(Flags::SYN, 0, 0, 1000, 0);
    hand.put(ACK, 1, 1, 1000, 0);
    assert_eq!(hand.state(), State::SynReceived);
    assert!(hand.out().iter().any(|o| o.flags.contains(Flags::SYN)));
    hand.segment(ACK, 1, 1, 1000, 0);
    assert_eq!(hand.state(), State::Established);
}

/// RFC 9293 §3.10.4: a CLOSE in SYN-RECEIVED sends its FIN once established, whichever segment does that; and
/// nothing can be written after it.
#[test]
fn a_close_in_syn_received_is_not_forgotten() {
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
        hand.host.shutdown_write(hand.now, id).unwrap();
        assert_eq!(hand.host.write(hand.now, id, b"more"), Err(IoError::Closed));
        let seq = u64::from(last == ACK);
        let out = hand.segment(last, seq, 1, 1000, 0);
        assert!(out.iter().any(|o| o.flags.contains(Flags::FIN) && o.len == 5), "{out:?}");
        assert_eq!(hand.state(), State::FinWait1);
        hand.segment(ACK, 1, 7, 1000, 0);
        assert_eq!(hand.state(), State::FinWait2);
    }
}

/// RFC 9293 §3.10.7.4: text beyond the peer's FIN is ignored; it must not end a connection that still sends.
#[test]
fn text_beyond_a_fin_is_ignored() {
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
    assert!(!hand.next().is_empty(), "the data is still sent again");
}

/// A FIN cannot lie below octets that have arrived.
#[test]
fn a_fin_in_the_middle_of_the_stream_is_not_believed() {
    let mut hand = connected("newreno", "default", 65_535);
    hand.segment(ACK, 101, 1, 65_535, 100);
    hand.segment(FIN, 51, 1, 65_535, 0);
    hand.segment(ACK, 1, 1, 65_535, 100);
    assert_eq!((hand.state(), hand.connection().readable()), (State::Established, 200));
    hand.segment(FIN, 201, 1, 65_535, 0);
    assert_eq!(hand.state(), State::CloseWait);
}

/// RFC 6191: a new SYN ends a TIME-WAIT, but the application may not have read everything yet.
#[test]
fn what_a_time_wait_holds_unread_survives_a_new_connection() {
    let profile = profile("default");
    let options = SocketOptions::of(&profile);
    let mut hand = Hand::new("newreno", profile);
    hand.open(options, mss(1460));
    hand.segment(ACK, 1, 1, 1000, 0);
    hand.accept();
    let id = hand.id.unwrap();
    hand.host.shutdown_write(hand.now, id).unwrap();
    hand.out();
    hand.segment(FIN, 1, 2, 1000, 10);
    assert_eq!(hand.state(), State::TimeWait);
    hand.options = mss(1460);
    let replies = hand.segment(Flags::SYN, 100_000, 0, 1000, 0);
    assert!(replies.iter().any(|o| o.flags.contains(Flags::SYN)), "{replies:?}");
    let mut buffer = [0; 20];
    assert_eq!(hand.host.read(hand.now, id, &mut buffer), Ok(10));
    assert_eq!(hand.host.read(hand.now, id, &mut buffer), Ok(0));
    hand.host.close(hand.now, id);
    hand.out();
    assert_eq!(hand.host.connections(), 1, "only the new one");
}

/// RFC 3168 §6.1.2: CWR follows a reduction for any reason, or the next echo reduces the window again.
#[test]
fn cwr_is_set_after_a_loss() {
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

/// RFC 7323 §5.5: a TS.Recent of 24 days ago refuses nothing, and gives way to what arrives.
#[test]
fn an_outdated_timestamp_gives_way() {
    let profile = profile("default");
    let options = SocketOptions::of(&profile);
    let mut hand = Hand::new("newreno", profile);
    hand.connect(options, with_timestamps(mss(1460), 0x7000_0000), 65_535);
    let echo = |out: &[super::hand::Out]| out.last().and_then(|o| o.options.timestamps).map(|ts| ts.ecr);
    hand.options = with_timestamps(Options::default(), 0x6fff_ffff);
    hand.segment(ACK, 1, 1, 65_535, 10);
    assert_eq!(hand.connection().readable(), 0, "an old timestamp");
    hand.now += Duration::from_secs(25 * 24 * 3600);
    let mut out = hand.segment(ACK, 1, 1, 65_535, 10);
    out.extend(hand.wait(Duration::from_secs(1)));
    assert_eq!((hand.connection().readable(), echo(&out)), (10, Some(0x6fff_ffff)));
}

/// The ACK of the original was lost: the sender must see by the echo that its copy is answered (RFC 7323 §4.3), and a
/// forged copy from the future must not make what follows look old.
#[test]
fn the_answer_to_a_copy_echoes_the_copy() {
    let echo = |out: &[super::hand::Out]| out.last().and_then(|o| o.options.timestamps).map(|ts| ts.ecr);
    for (name, echoed) in [("default", 1100), ("linux", 100), ("freebsd", 100)] {
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
        assert_eq!((hand.connection().readable(), echo(&out)), (2000, Some(1150)), "{name}");
    }
}

/// Keep-alive that is switched on while nothing happens.
#[test]
fn keepalive_begins_when_it_is_switched_on() {
    let mut hand = connected("newreno", "default", 65_535);
    let keepalive = KeepAlive { idle: HOUR, interval: Duration::from_secs(75), probes: 3 };
    let options = SocketOptions { keepalive: Some(keepalive), ..hand.connection().options().clone() };
    hand.host.set_options(hand.now, hand.id.unwrap(), options);
    hand.out();
    let out = hand.wait(HOUR * 2);
    assert_eq!(out.len(), 4, "three probes and a reset: {out:?}");
    assert_eq!(hand.state(), State::Closed);
}

/// A receiver that reports every second octet must not make the scoreboard grow without bound.
#[test]
fn a_scoreboard_has_no_more_pieces_than_segments() {
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
    assert!(pieces <= hand.connection().flight().len() + 1, "{pieces} pieces");
}

/// RFC 9293 §3.10.7.4: with a closed window text is refused, but the ACK counts, also that of our FIN.
#[test]
fn a_fin_is_acknowledged_by_a_segment_that_the_window_refuses() {
    let profile = profile("default");
    let options = SocketOptions { recv_buffer: 0, ..SocketOptions::of(&profile) };
    let mut hand = Hand::new("newreno", profile);
    hand.connect(options, mss(1460), 65_535);
    hand.host.shutdown_write(hand.now, hand.id.unwrap()).unwrap();
    hand.out();
    assert_eq!(hand.state(), State::FinWait1);
    hand.segment(ACK, 1, 2, 65_535, 100);
    assert_eq!((hand.state(), hand.connection().readable()), (State::FinWait2, 0));
}

/// RFC 9293 §3.10.7.4: SYN-RECEIVED answers an unacceptable segment with an ACK.
#[test]
fn syn_received_answers_what_it_cannot_accept() {
    let profile = profile("default");
    let mut hand = Hand::new("newreno", profile.clone());
    hand.open(SocketOptions::of(&profile), mss(1460));
    let replies = hand.segment(ACK, 5_000_000, 1, 1000, 10);
    assert_eq!(replies.len(), 1);
    assert_eq!((replies[0].flags, replies[0].seq, replies[0].ack), (ACK, 1, 1));
}

/// What an application wrote and was told is taken leaves, also if it shuts writing down, or closes, before the handshake
/// is over (RFC 9293 §3.9.1.4: several SENDs, then CLOSE).
#[test]
fn what_was_written_before_the_handshake_is_sent() {
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
            false => hand.host.shutdown_write(hand.now, id).unwrap(),
        }
        assert!(hand.out().is_empty(), "{profile_name}: nothing leaves before the answer");
        let out = hand.segment(Flags::SYN.with(ACK), 0, 1, 65_535, 0);
        let text = out.last().unwrap();
        assert_eq!((text.seq, text.len), (1, 5), "{profile_name}: {out:?}");
        assert!(text.flags.contains(Flags::FIN), "{profile_name}: {out:?}");
        assert!(hand.segment(ACK, 1, 7, 65_535, 0).is_empty());
        hand.segment(FIN, 1, 7, 65_535, 0);
        assert_eq!(hand.host.in_time_wait(), 1, "{profile_name}");
    }
}

/// A half-close says nothing about what is read: the FIN waits for the handshake, and the peer is heard.
#[test]
fn writing_shut_down_in_syn_sent_leaves_the_other_direction() {
    for simultaneous in [false, true] {
        let profile = profile("default");
        let options = SocketOptions::of(&profile);
        let mut hand = Hand::new("newreno", profile);
        let (from, to) = ((LEFT, 40_000).into(), (RIGHT, 80).into());
        let id = hand.host.connect(hand.now, Some(from), to, options).unwrap();
        hand.id = Some(id);
        assert_eq!(hand.out().len(), 1);
        hand.host.shutdown_write(hand.now, id).unwrap();
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
        assert_eq!(hand.host.read(hand.now, id, &mut [0; 100]), Ok(10), "simultaneous {simultaneous}");
    }
}

/// Where nothing was written, there is nothing to wait for (RFC 9293 §3.10.4).
#[test]
fn a_close_in_syn_sent_ends_a_connection_that_has_nothing_to_send() {
    let profile = profile("default");
    let mut hand = Hand::new("newreno", profile.clone());
    let to = (RIGHT, 80).into();
    let id = hand.host.connect(hand.now, None, to, SocketOptions::of(&profile)).unwrap();
    assert_eq!(hand.out().len(), 1);
    hand.host.close(hand.now, id);
    assert!(hand.out().is_empty());
    assert_eq!(hand.host.connections(), 0);
}

/// A segment that repeats something counts, whether or not it is reported by D-SACK.
#[test]
fn an_overlap_counts_as_a_duplicate_without_dsack_too() {
    for dsack in [true, false] {
        let profile = airtcp::profile::Profile { dsack, ..profile("linux") };
        let options = SocketOptions::of(&profile);
        let mut hand = Hand::new("newreno", profile);
        hand.connect(options, Options { sack_permitted: true, ..mss(1460) }, 65_535);
        let duplicates = |hand: &Hand| hand.connection().statistics().duplicate_segments_in;
        hand.segment(ACK, 1, 1, 65_535, 100);
        // Half old, half new; above a hole, and over its upper edge; all of it old.
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

/// A close before the handshake is over leaves nobody to read what comes with the SYN,ACK.
#[test]
fn text_of_a_syn_ack_for_nobody_is_not_acknowledged() {
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
/// RFC 2018: a FIN that has come before the data in front of it is part of the block.
#[test]
fn an_early_fin_is_reported() {
    let mut hand = Hand::new("sack", profile("linux"));
    let options = SocketOptions::of(&profile("linux"));
    hand.connect(options, Options { sack_permitted: true, ..mss(1460) }, 65_535);
    let blocks = |out: &[super::hand::Out]| out.last().map(|out| out.options.sack.as_slice().len());
    assert_eq!(blocks(&hand.segment(FIN, 1001, 1, 65_535, 0)), Some(1), "the FIN alone");
    let out = hand.segment(ACK, 501, 1, 65_535, 500);
    let sack = out[0].options.sack.as_slice().to_vec();
    assert_eq!(sack.len(), 1);
    assert_eq!(sack[0].1.0.wrapping_sub(sack[0].0.0), 501, "500 octets and the FIN");
    let out = hand.segment(ACK, 1, 1, 65_535, 500);
    assert_eq!((out[0].ack, hand.state()), (1002, State::CloseWait));
}

/// RFC 9293 §3.10.7.4, seventh step: in CLOSE-WAIT the text of a segment is ignored. A copy of the FIN is answered.
#[test]
fn text_behind_the_fin_is_ignored() {
    for profile_name in PROFILES {
        let mut hand = connected("newreno", profile_name, 65_535);
        hand.segment(FIN, 1, 1, 65_535, 0);
        hand.wait(Duration::from_secs(1));
        assert_eq!(hand.segment(ACK, 2, 1, 65_535, 100).len(), 0, "{profile_name}");
        assert_eq!(hand.segment(FIN, 1, 1, 65_535, 0).len(), 1, "{profile_name}");
    }
}

/// RFC 9293 §3.10.5, §3.10.7.4: neither a close with data unread nor late segments take TIME-WAIT away, and an abort
/// sends no reset where all has been sent.
#[test]
fn the_last_states_end_without_a_reset() {
    let mut hand = connected("newreno", "linux", 65_535);
    let id = hand.id.unwrap();
    hand.host.shutdown_write(hand.now, id).unwrap();
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
    hand.host.shutdown_write(hand.now, id).unwrap();
    hand.out();
    assert_eq!(hand.state(), State::LastAck);
    hand.host.abort(hand.now, id);
    assert!(hand.out().is_empty());
}

/// RFC 9293 §3.6.1: what is missing before an early FIN will be text that nobody reads.
#[test]
fn an_early_fin_after_a_close_is_answered_with_a_reset() {
    let mut hand = connected("newreno", "linux", 65_535);
    let id = hand.id.unwrap();
    hand.host.close(hand.now, id);
    hand.out();
    let out = hand.segment(FIN, 101, 2, 65_535, 0);
    assert!(out.len() == 1 && out[0].flags.contains(Flags::RST), "{out:?}");
}

/// The profile `linux` as the kernel is: ACKs that nobody needs twice a second, segments of half the window.
#[test]
fn linux_answers_sparingly_and_halves_the_window() {
    for (profile_name, answers, largest) in [("default", 3, 1000), ("linux", 1, 500)] {
        let mut hand = connected("newreno", profile_name, 1000);
        let answered: usize = (0..3).map(|_| hand.segment(ACK, 1, 5000, 1000, 0).len()).sum();
        assert_eq!(answered, answers, "{profile_name}");
        let len = hand.write(3000).iter().map(|out| out.len).max();
        assert_eq!(len, Some(largest), "{profile_name}");
    }
}
