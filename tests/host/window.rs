//! The peer's window, window probes, and the advertised window.

use airtcp::tcp::{SocketOptions, State};
use airwire::options::Options;
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::common::{PROFILES, VARIANTS, profile};
use crate::test_host::{TestHost, mss, sack};

const ACK: Flags = Flags::ACK;
const HOUR: Duration = Duration::from_secs(3600);

/// A host with a receive buffer of 1000 bytes, and a peer with the window scale option.
fn small_buffer() -> TestHost {
    let profile = profile("default");
    let options = SocketOptions { recv_buffer: Some(1000), ..SocketOptions::of(&profile) };
    let mut test = TestHost::new("newreno", profile);
    test.connect(options, Options { window_scale: Some(7), ..mss(1460) }, 65_535);
    test
}

/// RFC 9293 §3.8.6.1: while the peer answers probes, a closed window must not end the connection, even if
/// data beyond the window is in flight. That data leaves as soon as the window opens, not when the backed-off
/// timer expires.
#[test]
fn zero_window_with_data_in_flight_keeps_connection() {
    for (recipe, profile_name) in VARIANTS.iter().flat_map(|r| PROFILES.map(|p| (r, p))) {
        let mut test = TestHost::connected(recipe, profile(profile_name), mss(1460), 65_535);
        assert!(!test.write(5000).is_empty());
        let until = test.now + HOUR * 10;
        while test.now < until {
            for _ in test.next() {
                assert!(test.segment(ACK, 1, 1, 0, 0).len() <= 1);
            }
            assert_eq!(test.state(), State::Established, "{recipe} {profile_name} at {}", test.now);
        }
        // The window opens: the data is sent, and timeouts during the closed window do not count. Linux waits for
        // the retransmission timer (tcp_ack_probe()).
        let mut out = test.segment(ACK, 1, 1, 65_535, 0);
        if profile_name == "linux" {
            out.extend(test.wait(Duration::from_secs(120)));
        }
        assert!(out.iter().any(|o| o.seq == 1 && o.len > 0), "{recipe} {profile_name}: {out:?}");
        test.wait(Duration::from_secs(240));
        assert_eq!(test.state(), State::Established, "{recipe} {profile_name}");
        // A peer that stops answering is given up as usual.
        test.wait(HOUR * 10);
        assert_eq!(test.state(), State::Closed, "{recipe} {profile_name}");
    }
}

/// RFC 9293 §3.8.6: data that a closed window refused is sent when the window opens, as fast as ACKs arrive,
/// with every loss detector. Linux waits for its retransmission timer first. Answers to probes do not trigger any transmission.
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
            let mut test = TestHost::connected(recipe, profile(profile_name), sack(), 65_535);
            assert!(!test.write(5000).is_empty());
            for _ in 0..4 {
                assert!(test.segment(ACK, 1, 1, 0, 0).is_empty(), "{what}");
            }
            for _ in 0..timeouts {
                while test.next().is_empty() {}
                assert!(test.segment(ACK, 1, 1, 0, 0).is_empty(), "{what}");
            }
            let mut out = test.segment(ACK, 1, 1, 65_535, 0);
            let (mut next, until) = (1, test.now + HOUR);
            while !out.is_empty() || profile_name == "linux" && next < 5001 && test.now < until {
                next = out.iter().fold(next, |next, text| match text.seq <= next {
                    true => next.max(text.seq + text.len),
                    false => next,
                });
                let is_late = out.is_empty();
                out = if is_late { test.next() } else { test.segment(ACK, 1, next, 65_535, 0) };
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
        let mut test = TestHost::connected("newreno", profile(profile_name), mss(1460), 65_535);
        test.write(1000);
        // The window shrinks from 64 KiB to 300 bytes.
        assert!(test.segment(ACK, 1, 1001, 300, 0).is_empty());
        assert!(
            test.write(3000).is_empty(),
            "{profile_name}: a small segment left before the override timeout"
        );
        let mut acked = 1001;
        let begin = test.now;
        while acked < 4001 {
            for out in test.next() {
                assert!(out.len <= 300, "{profile_name}: {out:?}");
                acked = acked.max(out.seq + out.len);
            }
            test.segment(ACK, 1, acked, 300, 0);
            assert!(test.now - begin < Duration::from_secs(30), "{profile_name}: {acked}");
        }
    }
}

/// RFC 9293 §3.8.6.1: a probe carries a byte that the application has written. Once the last such byte is
/// accepted, no byte is left to probe with. The host must not make up a byte or a FIN.
#[test]
fn window_probe_never_sends_unwritten_byte() {
    let mut test = TestHost::connected("newreno", profile("default"), mss(1460), 0);
    assert!(test.write(1).is_empty());
    let probe = test.next();
    assert_eq!((probe.len(), probe[0].seq, probe[0].len), (1, 1, 1));
    test.segment(ACK, 1, 2, 0, 0);
    let out = test.wait(HOUR);
    assert!(out.is_empty(), "{out:?}");
    assert!(test.write(10).is_empty());
    let out = test.segment(ACK, 1, 2, 1000, 0);
    assert!(
        out.len() == 1 && out[0].seq == 2 && out[0].len == 10 && !out[0].flags.contains(Flags::FIN),
        "{out:?}"
    );
}

/// RFC 7323 §2.4: a window that was rounded up to its unit must not be rounded up again with every ACK.
#[test]
fn scaled_window_closes_despite_tiny_segments() {
    let mut test = small_buffer();
    let mut next = 1;
    loop {
        let edge = next;
        let mut replies = test.segment(ACK, next, 1, 65_535, 1);
        replies.extend(test.wait(Duration::from_millis(100)));
        let last = replies.last().unwrap();
        assert!(last.ack > edge, "a byte inside the window was refused");
        next = last.ack;
        if last.window == 0 {
            break;
        }
        assert!(next < 1 + 1000 + 256, "{next} bytes in a buffer of 1000");
    }
    assert!(next > 900, "closed after only {next} bytes");
    assert_eq!(test.connection().readable() as u64, next - 1);
}

/// RFC 7323 §2.4: a window is rounded to the unit of its scale, so a later ACK may advertise a lower edge.
/// The peer may have used the higher one.
#[test]
fn data_below_any_advertised_edge_is_accepted() {
    const UNIT: u64 = 256;
    let mut test = small_buffer();
    for (seq, len, edge) in [(1, 231, 1256), (232, 1, 1001)] {
        let mut out = test.segment(ACK, seq, 1, 65_535, len);
        out.extend(test.wait(Duration::from_millis(200)));
        assert_eq!(out.len(), 1, "{out:?}");
        assert_eq!(out[0].ack + UNIT * u64::from(out[0].window), edge, "{out:?}");
    }
    let unacceptable = test.connection().statistics().unacceptable;
    test.segment(ACK, 1246, 1, 65_535, 10);
    let statistics = test.connection().statistics();
    assert_eq!((statistics.out_of_order_segments_in, statistics.unacceptable), (1, unacceptable));
}

/// RFC 9293 §3.4: a FIN occupies a sequence number, which must be inside the window.
#[test]
fn fin_waits_for_window() {
    for profile_name in PROFILES {
        let mut test = TestHost::connected("newreno", profile(profile_name), mss(1460), 1000);
        test.enqueue(1000);
        let out = test.shutdown_write();
        let fills = out.iter().map(|out| out.len).sum::<u64>() == 1000;
        assert!(fills && out.iter().all(|out| !out.flags.contains(Flags::FIN)), "{profile_name}: {out:?}");
        assert!(test.segment(ACK, 1, 1001, 0, 0).is_empty());
        let probes = test.wait(Duration::from_secs(60));
        assert!(!probes.is_empty(), "{profile_name}: no window probe was sent");
        let mut out = test.segment(ACK, 1, 1001, 1000, 0);
        out.extend(test.wait(Duration::from_secs(120)));
        assert!(out.iter().any(|o| o.flags.contains(Flags::FIN) && o.seq == 1001), "{profile_name}: {out:?}");
        test.segment(ACK, 1, 1002, 1000, 0);
        assert_eq!(test.state(), State::FinWait2);
    }
}

/// The profile `linux` imitates the kernel: segments of at most half the window.
#[test]
fn linux_limits_segment_size_to_half_the_window() {
    for (profile_name, largest) in [("default", 1000), ("linux", 500)] {
        let mut test = TestHost::connected("newreno", profile(profile_name), mss(1460), 1000);
        let len = test.write(3000).iter().map(|out| out.len).max();
        assert_eq!(len, Some(largest), "{profile_name}");
    }
}
