//! ECN, timestamps, SACK and keep-alive.

use airtcp::tcp::{KeepAlive, SocketOptions, State};
use airwire::options::{Options, SackBlocks};
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::common::profile;
use crate::test_host::{Out, TestHost, mss, sack, with_timestamps};

const ACK: Flags = Flags::ACK;
const HOUR: Duration = Duration::from_secs(3600);

/// RFC 3168 §6.1.2: CWR is set after any reduction. Otherwise the next ECN echo reduces the window again.
#[test]
fn cwr_is_set_after_loss() {
    let mut test = TestHost::syn_sent("newreno+ecn", profile("default"));
    test.options = mss(1460);
    test.segment(Flags::SYN.with(ACK).with(Flags::ECE), 0, 1, 65_535, 0);
    test.options = Options::default();
    assert_eq!(test.write(14_600).len(), 10);
    for _ in 0..3 {
        test.segment(ACK, 1, 1, 65_535, 0);
    }
    test.enqueue(14_600);
    let new = test.segment(ACK, 1, 14_601, 65_535, 0);
    let cwr: Vec<bool> = new.iter().map(|o| o.flags.contains(Flags::CWR)).collect();
    assert!(cwr[0] && !cwr[1..].contains(&true), "{cwr:?}");
}

/// Returns the timestamp that the last segment echoes.
fn echo(out: &[Out]) -> Option<u32> {
    out.last()?.options.timestamps.map(|timestamps| timestamps.ecr)
}

/// RFC 7323 §5.5: a TS.Recent that is older than 24 days is invalid. No segment is refused because of the
/// outdated TS.Recent, and the next timestamp replaces it.
#[test]
fn outdated_ts_recent_does_not_refuse_segments() {
    let syn_ack = with_timestamps(mss(1460), 0x7000_0000);
    let mut test = TestHost::connected("newreno", profile("default"), syn_ack, 65_535);
    test.options = with_timestamps(Options::default(), 0x6fff_ffff);
    test.segment(ACK, 1, 1, 65_535, 10);
    assert_eq!(test.connection().readable(), 0, "the old timestamp is refused");
    test.now += Duration::from_secs(25 * 24 * 3600);
    let mut out = test.segment(ACK, 1, 1, 65_535, 10);
    out.extend(test.wait(Duration::from_secs(1)));
    assert_eq!((test.connection().readable(), echo(&out)), (10, Some(0x6fff_ffff)));
}

/// The ACK of the original was lost, and a retransmission arrives. The default profile and Linux echo the
/// timestamp of the retransmission, so that the sender can attribute the ACK to the retransmission (RFC 7323
/// §4.3). FreeBSD echoes the old timestamp. A forged copy with a timestamp from the future must not make
/// later segments look old, except in Linux, which stores the timestamp (tcp_replace_ts_recent()).
#[test]
fn ack_of_retransmission_echoes_timestamp_per_profile() {
    for (name, echoed) in [("default", 1100), ("linux", 1100), ("freebsd", 100)] {
        let syn_ack = with_timestamps(mss(1460), 90);
        let mut test = TestHost::connected("newreno", profile(name), syn_ack, 65_535);
        test.options = with_timestamps(Options::default(), 100);
        test.segment(ACK, 1, 1, 65_535, 1000);
        test.wait(Duration::from_secs(1));
        test.options = with_timestamps(Options::default(), 1100);
        assert_eq!(echo(&test.segment(ACK, 1, 1, 65_535, 1000)), Some(echoed), "{name}");
        test.options = with_timestamps(Options::default(), 0x4000_0000);
        test.segment(ACK, 1, 1, 65_535, 1000);
        test.options = with_timestamps(Options::default(), 1150);
        let mut out = test.segment(ACK, 1001, 1, 65_535, 1000);
        out.extend(test.wait(Duration::from_secs(1)));
        let result = if name == "linux" { (1000, Some(0x4000_0000)) } else { (2000, Some(1150)) };
        assert_eq!((test.connection().readable(), echo(&out)), result, "{name}");
    }
}

/// The scoreboard stays bounded even if a receiver SACKs single bytes.
#[test]
fn scoreboard_has_no_more_ranges_than_segments() {
    let mut test = TestHost::connected("sack", profile("default"), sack(), 65_535);
    assert_eq!(test.write(14_600).len(), 10);
    for i in 0..3000 {
        let mut sack = SackBlocks::default();
        let left = 14_000 - 4 * i;
        sack.push(test.wire(left), test.wire(left + 1));
        test.options.sack = sack;
        test.segment(ACK, 1, 1, 65_535, 0);
    }
    let pieces = test.connection().flight().sacked_ranges().len();
    assert!(pieces <= test.connection().flight().len() + 1, "{pieces} ranges");
}

#[test]
fn new_maximum_segment_size_applies_to_next_segments() {
    let mut test = TestHost::connected("newreno", profile("default"), mss(1460), 65_535);
    assert_eq!(test.write(2920).iter().map(|out| out.len).collect::<Vec<_>>(), [1460, 1460]);
    test.segment(ACK, 1, 2921, 65_535, 0);
    let options = SocketOptions { max_seg: Some(500), ..test.connection().options().clone() };
    test.host.set_options(test.now, test.id.unwrap(), options);
    assert_eq!(test.write(1000).iter().map(|out| out.len).collect::<Vec<_>>(), [500, 500]);
}

#[test]
fn keepalive_starts_when_enabled_on_idle_connection() {
    let mut test = TestHost::connected("newreno", profile("default"), mss(1460), 65_535);
    let keepalive = KeepAlive { idle: HOUR, interval: Duration::from_secs(75), probes: 3 };
    let options = SocketOptions { keepalive: Some(keepalive), ..test.connection().options().clone() };
    test.host.set_options(test.now, test.id.unwrap(), options);
    test.out();
    let out = test.wait(HOUR * 2);
    assert_eq!(out.len(), 4, "three probes and a reset: {out:?}");
    assert_eq!(test.state(), State::Closed);
}
