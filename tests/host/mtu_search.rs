//! Path MTU discovery without ICMP errors (RFC 4821), over paths that drop long packets without an error.

use airtcp::events::EventKind;
use airtcp::host::ConnId;
use airtcp::profile::{MtuProbing, Profile};
use airtcp::tcp::{Connection, SocketOptions};
use airtcp_testkit::exchange::Exchange;
use airtcp_testkit::pair::{Impairments, Pair, RIGHT};
use airtcp_testkit::sample::sample;
use airwire::options::Options;
use airwire::rng::Stream;
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::common::{PROFILES, VARIANTS, pair, path, plan, profile};
use crate::test_host::{Out, TestHost, mss};

const ACK: Flags = Flags::ACK;
/// Headers and the timestamps option.
const HEADERS: u64 = 52;
const MINUTE: Duration = Duration::from_secs(60);
/// Senders with every repair, both ways of counting the window, and those that pace or defer.
const SENDERS: [(&str, &str); 9] = [
    ("newreno", "default"),
    ("reno", "default"),
    ("tahoe", "default"),
    ("sack", "default"),
    ("sack+rack+prr", "default"),
    ("sack+pr", "default"),
    ("newreno", "linux"),
    ("linux", "linux"),
    ("bbr-linux", "linux"),
];

/// A connection over a path with a round trip of 20 ms and 8 Mbit/s. The left host sends.
struct Transfer {
    pair: Pair,
    sender: ConnId,
    receiver: ConnId,
}

impl Transfer {
    fn new(recipe: &str, profile_name: &str, mtu_probing: MtuProbing, longest: usize) -> Self {
        let per_byte = Duration::from_micros(1);
        let path = Impairments {
            longest: Some(longest),
            per_byte,
            ..Impairments::lossless(Duration::from_millis(10))
        };
        let mut pair = pair(1, recipe, profile_name, path);
        let options = SocketOptions {
            mtu_probing,
            recv_buffer: Some(60_000),
            ..SocketOptions::of(&profile(profile_name))
        };
        let listener = pair.right.listen((RIGHT, 80).into(), 1, options.clone()).unwrap();
        let sender = pair.left.connect(pair.now, None, (RIGHT, 80).into(), options).unwrap();
        let receiver = loop {
            assert!(pair.step());
            if let Some(receiver) = pair.right.accept(listener) {
                break receiver;
            }
        };
        Self { pair, sender, receiver }
    }

    fn connection(&self) -> &Connection {
        self.pair.left.connection(self.sender).unwrap()
    }

    /// Returns the segments that arrived twice.
    fn duplicates(&self) -> u64 {
        self.pair.right.connection(self.receiver).unwrap().statistics().duplicate_segments_in
    }

    /// Sends `bytes`. Returns true if they are acknowledged within `limit`.
    fn send(&mut self, bytes: usize, limit: Duration) -> bool {
        let deadline = self.pair.now + limit;
        let mut left = bytes;
        let mut buffer = vec![0; 1 << 16];
        while left > 0 || self.connection().unacknowledged() > 0 {
            left -= self.pair.left.write(self.pair.now, self.sender, &vec![7; left]).unwrap_or(0);
            if self.pair.now > deadline || !self.pair.step() {
                return false;
            }
            while self.pair.right.read(self.receiver, &mut buffer).is_ok() {}
        }
        true
    }
}

/// The search ends at 1300 bytes: 1288 and 1300 are delivered, 1394, 1340, 1313 and 1306 are lost.
#[test]
fn search_finds_path_mtu_without_reducing_window() {
    for (recipe, profile) in SENDERS {
        let what = format!("{recipe}@{profile}");
        let mut transfer = Transfer::new(recipe, profile, MtuProbing::Always, 1300);
        assert_eq!(transfer.connection().smss(), 1024, "{what}");
        assert!(transfer.send(2_000_000, MINUTE), "{what}");
        let connection = transfer.connection();
        assert_eq!(connection.smss(), 1300 - HEADERS, "{what}");
        let statistics = connection.statistics();
        assert_eq!((statistics.mtu_probes, statistics.mtu_probes_lost), (6, 4), "{what}");
        let counters = connection.recovery().counters();
        assert_eq!((counters.timeouts, counters.window_reductions), (0, 0), "{what}");
        assert_eq!((counters.fast_retransmits, transfer.duplicates()), (4, 0), "{what}");
    }
}

#[test]
fn timeouts_reveal_black_hole() {
    for (recipe, profile) in SENDERS {
        let what = format!("{recipe}@{profile}");
        let mut without = Transfer::new(recipe, profile, MtuProbing::Off, 1300);
        assert!(!without.send(2_000_000, MINUTE), "{what}");
        assert_eq!(without.connection().statistics().bytes_acked, 0, "{what}");

        let mut with = Transfer::new(recipe, profile, MtuProbing::OnLoss, 1300);
        assert_eq!(with.connection().smss(), 1500 - HEADERS, "{what}");
        assert!(with.send(2_000_000, MINUTE), "{what}");
        assert_eq!(with.connection().smss(), 1300 - HEADERS, "{what}");
    }
}

/// Timeouts halve the segments down to `tcp_mtu_probe_floor`.
#[test]
fn segments_shrink_until_they_pass() {
    for longest in [600, 300, 100] {
        let mut transfer = Transfer::new("sack", "linux", MtuProbing::OnLoss, longest);
        assert!(transfer.send(2_000, MINUTE * 10), "{longest}");
        assert!(transfer.connection().smss() + HEADERS <= longest as u64, "{longest}");
    }
}

/// FreeBSD, `tcp_timer_rexmt`: two timeouts for each size, then the original size again if neither passes.
#[test]
fn freebsd_tries_two_shorter_segments() {
    let after = |longest| {
        let mut transfer = Transfer::new("newreno", "freebsd", MtuProbing::OnLoss, longest);
        let done = transfer.send(50_000, MINUTE * 2);
        (done, transfer.connection().smss())
    };
    assert_eq!(after(1300), (true, 1200 - 12));
    assert_eq!(after(700), (true, 536 - 12));
    assert_eq!(after(200), (false, 1460 - 12));
}

#[test]
fn longer_packets_are_tried_again_after_ten_minutes() {
    for (recipe, profile) in [("newreno", "default"), ("linux", "linux")] {
        let mut transfer = Transfer::new(recipe, profile, MtuProbing::Always, 1300);
        assert!(transfer.send(2_000_000, MINUTE));
        transfer.pair.path.longest = None;
        transfer.pair.now += MINUTE * 9;
        assert!(transfer.send(2_000_000, MINUTE));
        assert_eq!(transfer.connection().smss(), 1300 - HEADERS);
        transfer.pair.now += MINUTE;
        assert!(transfer.send(2_000_000, MINUTE));
        // The search ends less than 8 bytes below the MTU of the interface.
        assert!(transfer.connection().smss() > 1500 - HEADERS - 8, "{}", transfer.connection().smss());
    }
}

#[test]
fn transfers_over_black_holes_complete() {
    for seed in sample("black holes", 0..200_u64, 40) {
        let mut rng = Stream::new(seed, "black hole");
        let recipe = VARIANTS[rng.below(VARIANTS.len() as u64) as usize];
        let profile = PROFILES[rng.below(3) as usize];
        // FreeBSD sends no segments below 536 bytes.
        let least = if profile == "freebsd" { 576 } else { 200 };
        let path = Impairments {
            loss: rng.unit() * 0.05,
            reorder: rng.unit() * 0.1,
            reorder_by: Duration::from_millis(30),
            longest: Some((least + rng.below(1501 - least)) as usize),
            ..path(rng.below(50))
        };
        let mut plan = plan(profile, [200_000, 20_000]);
        plan.options.mtu_probing = [MtuProbing::OnLoss, MtuProbing::Always][rng.below(2) as usize];
        let what = format!("seed {seed} {recipe} {profile} {plan:?} {path:?}");
        let mut exchange = Exchange::new(pair(seed, recipe, profile, path), plan).unwrap();
        exchange.complete(Duration::from_secs(24 * 3600)).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

/// A connection without timestamps, whose segments have 1024 bytes.
fn searching() -> TestHost {
    let profile = Profile::default();
    let options = SocketOptions { mtu_probing: MtuProbing::Always, ..SocketOptions::of(&profile) };
    let mut test = TestHost::new("newreno", profile);
    test.host.note_events();
    test.send_syn(options);
    test.now += Duration::from_millis(100);
    test.options = mss(1460);
    test.segment(Flags::SYN.with(ACK), 0, 1, 65_535, 0);
    test.options = Options::default();
    test
}

/// The window grows to 11 segments, and the third segment of the flight is a probe of 1242 bytes.
fn probing() -> TestHost {
    let mut test = searching();
    assert_eq!(lengths(&test.write(40_000)), [1024; 10]);
    test.now += Duration::from_millis(100);
    assert_eq!(lengths(&test.segment(ACK, 1, 1 + 2 * 1024, 65_535, 0)), [1242, 1024]);
    test
}

/// An application that writes only what [`Connection::enough_unsent`] demands gets probes too.
#[test]
fn probe_does_not_need_full_send_buffer() {
    let mut test = searching();
    let id = test.id.unwrap();
    let wanted = |test: &mut TestHost| {
        let (now, connection) = (test.now, test.host.connection_mut(id).unwrap());
        (connection.enough_unsent(now) as usize).saturating_sub(connection.unsent())
    };
    let count = wanted(&mut test);
    assert_eq!(lengths(&test.write(count)), [1024; 10]);
    test.now += Duration::from_millis(100);
    test.deliver(ACK, 1, 1 + 2 * 1024, 65_535, 0);
    let count = wanted(&mut test);
    assert_eq!(lengths(&test.write(count)), [1242, 1024]);
}

/// The first byte of the probe.
const PROBE: u64 = 1 + 10 * 1024;

fn lengths(out: &[Out]) -> Vec<u64> {
    out.iter().map(|out| out.len).collect()
}

/// Three duplicate ACKs report the loss of the probe. Its whole data is retransmitted, in segments that pass.
#[test]
fn lost_probe_is_retransmitted_in_parts() {
    let mut test = probing();
    test.segment(ACK, 1, PROBE, 65_535, 0);
    let cwnd = |test: &TestHost| test.connection().recovery().congestion().cwnd;
    let before = cwnd(&test);
    let parts: Vec<_> = (0..3).flat_map(|_| test.segment(ACK, 1, PROBE, 65_535, 0)).collect();
    let parts: Vec<_> =
        parts.iter().filter(|out| out.seq < PROBE + 1242).map(|out| (out.seq, out.len)).collect();
    assert_eq!(parts, [(PROBE, 1024), (PROBE + 1024, 218)]);
    // The ACK of the first part does not cause a third retransmission.
    let resent = test.connection().statistics().bytes_resent;
    test.segment(ACK, 1, PROBE + 1024, 65_535, 0);
    assert_eq!((test.connection().statistics().bytes_resent, resent), (1242, 1242));
    let max = test.connection().flight().max();
    test.segment(ACK, 1, max, 65_535, 0);
    assert!(cwnd(&test) >= before, "{} after {before}", cwnd(&test));
    assert_eq!(test.connection().statistics().mtu_probes_lost, 1);
}

/// A router reports the probe. Only the probe is lost, so nothing else is retransmitted (RFC 1191 §6.4).
#[test]
fn icmp_error_about_probe_bounds_search() {
    let mut test = probing();
    let una = test.connection().flight().una();
    test.icmp(3, 4, 1100, una);
    assert_eq!((test.connection().smss(), test.connection().statistics().bytes_resent), (1024, 0));
    test.segment(ACK, 1, PROBE, 65_535, 0);
    for _ in 0..3 {
        test.segment(ACK, 1, PROBE, 65_535, 0);
    }
    let max = test.connection().flight().max();
    // The next probe has the middle of 1064 and 1100 bytes.
    let next = test.segment(ACK, 1, max, 65_535, 0);
    assert_eq!(next[0].len, 1082 - 40);
}

/// A retransmission for another reason does not show whether the path delivers the probe.
#[test]
fn retransmission_ends_probe_without_result() {
    let mut test = probing();
    test.wait(Duration::from_secs(1));
    assert_eq!(test.connection().recovery().counters().timeouts, 1);
    let max = test.connection().flight().max();
    test.segment(ACK, 1, max, 65_535, 0);
    let statistics = test.connection().statistics();
    assert_eq!((statistics.mtu_probes_lost, test.connection().smss()), (0, 1024));
}

#[test]
fn packet_length_changes_are_reported() {
    let mut test = probing();
    test.segment(ACK, 1, PROBE + 1242, 65_535, 0);
    let events = std::iter::from_fn(|| test.host.poll_event());
    let pmtu: Vec<_> =
        events.map(|event| event.kind).filter(|kind| matches!(kind, EventKind::Pmtu { .. })).collect();
    assert_eq!(pmtu, [EventKind::Pmtu { from: 1500, to: 1064 }, EventKind::Pmtu { from: 1064, to: 1282 }]);
}
