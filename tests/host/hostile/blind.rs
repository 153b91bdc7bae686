//! An attacker off the path, who knows the addresses and ports of connections but none of their sequence
//! numbers. The attacker forges segments, and receives only the packets to its own address (RFC 5961,
//! CVE-2016-5696).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use airtcp::host::Limits;
use airtcp_testkit::hostile::segment_of;
use airwire::options::{Options, Timestamps};
use airwire::segment::Flags;
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use super::strangers::{Reply, SERVER, Server, client, full};
use crate::common::{PROFILES, START, profile};

/// The sequence number that the attacker tries.
const GUESS: Seq = Seq(1 << 30);
const ATTACKER: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));
/// Timestamps before and after the last genuine one.
const OLD: u32 = 900;
const GENUINE: u32 = 1001;
const NEW: u32 = 1002;

/// A kind of forged segment.
#[derive(Clone, Copy, Debug)]
struct Forged {
    flags: Flags,
    len: usize,
    timestamp: u32,
}

const DATA: Forged = Forged { flags: Flags::ACK, len: 100, timestamp: NEW };
const OLD_DATA: Forged = Forged { timestamp: OLD, ..DATA };
const FIN: Forged = Forged { flags: Flags::FIN.with(Flags::ACK), len: 0, ..DATA };
const PURE_ACK: Forged = Forged { len: 0, ..DATA };
const OLD_ACK: Forged = Forged { len: 0, ..OLD_DATA };
const SYN: Forged = Forged { flags: Flags::SYN, len: 0, ..DATA };
const RST: Forged = Forged { flags: Flags::RST, len: 0, ..DATA };

impl Forged {
    fn packet(self, from: SocketAddr, seq: Seq) -> Vec<u8> {
        packet(from, self.flags, (seq, Seq(0x1234_5678)), self.timestamp, self.len)
    }
}

fn packet(from: SocketAddr, flags: Flags, numbers: (Seq, Seq), timestamp: u32, len: usize) -> Vec<u8> {
    let timestamps = Some(Timestamps { val: timestamp, ecr: 0 });
    let options = Options { timestamps, ..Options::default() };
    segment_of((from, SERVER), flags, numbers, &options, &[b'x'; 100][..len])
}

/// Opens a connection whose first byte of data has the number `next`. Returns SND.NXT of the server.
fn open(server: &mut Server, from: SocketAddr, next: Seq) -> Seq {
    let syn = (Seq(next.0.wrapping_sub(1)), Seq(0));
    let out = server.handle(&segment_of((from, SERVER), Flags::SYN, syn, &full(), &[]));
    let [Reply { seq, .. }] = &out[..] else { panic!("{out:?}") };
    let acked = seq.at(1);
    assert_eq!(server.handle(&packet(from, Flags::ACK, (next, acked), GENUINE, 0)), []);
    acked
}

// ----- the packets that reach the attacker -----

/// The secret of a victim: the distance of GUESS from RCV.NXT, or `None` without a connection.
type Secret = Option<u32>;

const INSIDE: Secret = Some(1000);
const BEYOND_WINDOW: Secret = Some(6 << 20);
const FAR: Secret = Some(9 << 20);
const ELSEWHERE: Secret = Some(1 << 30);

/// Returns the packets that reach the attacker while it forges segments of two victims and then provokes the
/// maximum number of replies, both on its own connection and from a port without a connection.
fn packets_to_attacker(profile_name: &str, secrets: [Secret; 2], forged: Forged) -> Vec<Reply> {
    let mut server = Server::new(profile(profile_name), 64, Limits::default());
    let victims = [client(0), client(1)];
    for (victim, secret) in victims.into_iter().zip(secrets) {
        if let Some(distance) = secret {
            open(&mut server, victim, Seq(GUESS.0 - distance));
        }
    }
    let (own, other_port) = (SocketAddr::new(ATTACKER, 6000), SocketAddr::new(ATTACKER, 6001));
    open(&mut server, own, Seq(10));
    let mut all = vec![];
    for second in 2..4 {
        server.now = Instant::from_secs(second);
        for packet in victims.map(|victim| forged.packet(victim, GUESS)) {
            for _ in 0..300 {
                all.extend(server.handle(&packet));
            }
        }
        let probes = [
            (10, SYN.packet(own, Seq(20))),
            (10, RST.packet(own, Seq(20))),
            (1100, DATA.packet(own, Seq(1 << 30))),
            (1100, PURE_ACK.packet(other_port, Seq(1))),
        ];
        for (count, packet) in probes {
            for _ in 0..count {
                all.extend(server.handle(&packet));
            }
        }
    }
    all.retain(|out| out.to.ip() == ATTACKER);
    all
}

/// Packets to the attacker do not depend on the secrets, so their number and content reveal nothing.
#[test]
fn attacker_sees_no_effect_of_other_connections() {
    let cases = [
        [INSIDE, ELSEWHERE],
        [ELSEWHERE, INSIDE],
        [BEYOND_WINDOW, ELSEWHERE],
        [FAR, ELSEWHERE],
        [None, ELSEWHERE],
    ];
    for name in PROFILES {
        for forged in [DATA, OLD_DATA, FIN, PURE_ACK, SYN, RST] {
            let expected = packets_to_attacker(name, [ELSEWHERE, ELSEWHERE], forged);
            let resets = expected.iter().filter(|out| out.flags.contains(Flags::RST)).count();
            assert_eq!((resets, expected.len() - resets), (200, 4), "{name}: the attacker provokes replies");
            for secrets in cases {
                let seen = packets_to_attacker(name, secrets, forged);
                assert!(
                    seen == expected,
                    "{name}, {forged:?}: the attacker can distinguish {secrets:?}: {} packets, not {}",
                    seen.len(),
                    expected.len()
                );
            }
        }
    }
}

#[test]
fn timestamps_do_not_reveal_those_of_other_connections() {
    let mut server = Server::new(profile("default"), 64, Limits::default());
    let mut timestamp = |n| server.syn(client(n), &full()).answer.options.timestamps.unwrap().val;
    let (first, second) = (timestamp(0), timestamp(1));
    assert!(first.abs_diff(second) > 1_000_000, "{first} and {second} in the same millisecond");
}

// ----- limits of each connection -----

#[test]
fn unacceptable_segments_get_one_ack_per_half_second() {
    let cases = [
        (DATA, ELSEWHERE),
        (OLD_DATA, ELSEWHERE),
        (FIN, ELSEWHERE),
        (PURE_ACK, ELSEWHERE),
        (PURE_ACK, BEYOND_WINDOW),
        (PURE_ACK, INSIDE),
        (OLD_ACK, INSIDE),
        (DATA, INSIDE),
        (SYN, ELSEWHERE),
        (SYN, INSIDE),
        (RST, INSIDE),
    ];
    for name in PROFILES {
        for (forged, secret) in cases {
            let mut server = Server::new(profile(name), 64, Limits::default());
            let next = Seq(GUESS.0 - secret.unwrap());
            for n in 0..2 {
                open(&mut server, client(n), next);
            }
            let mut replies = |millis, n| {
                server.now = START + Duration::from_millis(millis);
                let packet = forged.packet(client(n), GUESS);
                (0..500).map(|_| server.handle(&packet).len()).sum::<usize>()
            };
            let counts = [replies(0, 0), replies(499, 0), replies(499, 1), replies(500, 0), replies(998, 1)];
            assert_eq!(counts, [1, 0, 1, 1, 0], "{name}, {forged:?} at {secret:?}");
        }
    }
}

/// A peer whose ACK was lost retransmits. It gets an ACK for each segment, but not for more segments than it
/// has sent. A segment that is only dropped leaves no trace in the next ACK.
#[test]
fn copies_get_no_more_acks_than_segments_arrived() {
    for name in PROFILES {
        for timestamp in [GENUINE, OLD] {
            let mut server = Server::new(profile(name), 64, Limits::default());
            let from = client(0);
            let acked = open(&mut server, from, GUESS);
            let text =
                |n: u64, timestamp| packet(from, Flags::ACK, (GUESS.at(100 * n), acked), timestamp, 100);
            for n in 0..40 {
                server.handle(&text(n, GENUINE));
            }
            let copies = |server: &mut Server, millis, timestamp| {
                server.now = START + Duration::from_millis(millis);
                (0..500).map(|n| server.handle(&text(n % 30, timestamp)).len()).sum::<usize>()
            };
            let at_once = copies(&mut server, 0, timestamp);
            assert!((40..=60).contains(&at_once), "{name}: {at_once} ACKs of copies after 40 segments");
            assert_eq!(copies(&mut server, 499, 0x4000_0000), 0, "{name}");
            let out: Vec<Reply> = (40..44).flat_map(|n| server.handle(&text(n, NEW))).collect();
            let options = out.last().unwrap().options;
            assert_eq!(options.timestamps.unwrap().ecr, NEW, "{name}");
            assert!(options.sack.as_slice().is_empty(), "{name}: {options:?}");
            assert_eq!(copies(&mut server, 500, timestamp), 5, "{name}: four new segments, and 500 ms");
        }
    }
}

#[test]
fn repeated_syn_gets_one_answer_per_half_second() {
    for name in PROFILES {
        let mut server = Server::new(profile(name), 64, Limits::default());
        server.syn(client(0), &full());
        let syn = segment_of((client(0), SERVER), Flags::SYN, (Seq(9), Seq(0)), &full(), &[]);
        let mut answers = |millis| {
            server.now = START + Duration::from_millis(millis);
            (0..500).map(|_| server.handle(&syn).len()).sum::<usize>()
        };
        assert_eq!([answers(0), answers(499), answers(500)], [1, 0, 1], "{name}");
    }
}
