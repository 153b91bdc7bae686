//! Abbreviated packets between two hosts describe the text that the application wrote.

use airtcp::host::{ConnId, Host, HostConfig};
use airtcp::profile::Profile;
use airtcp::tcp::SocketOptions;
use airtcp_testkit::pair::{LEFT, RIGHT};
use airwire::rng::Stream;
use airwire::segment::{self, Segment, Verified};
use airwire::seq::Seq;
use airwire::text::{Known, Text};
use airwire::time::{Duration, Instant};

use crate::common::recipe;

/// Positions of the bytes that the left host sends.
const FIRST: u64 = 123_456_789;
const LENGTH: u64 = 200_003;
const DELAY: Duration = Duration::from_millis(20);

fn parse(packet: &[u8]) -> Segment<'_> {
    let ip = segment::parse_abbreviated_ip(packet).unwrap();
    segment::parse_tcp(&ip, Verified::ByDevice).unwrap()
}

/// The parser for the usual form agrees with the general one on `packet`. It may leave damaged packets to it.
fn check_parsers(packet: &[u8], damage: &mut Stream) {
    let text_of = |segment: Segment<'_>| format!("{segment:?}");
    let general = |packet: &[u8]| {
        let ip = segment::parse_abbreviated_ip(packet).ok()?;
        segment::parse_tcp(&ip, Verified::ByDevice).ok().map(text_of)
    };
    assert_eq!(segment::parse_usual_abbreviated(packet).map(text_of), general(packet));
    let (mut damaged, len) = (packet.to_vec(), packet.len() as u64);
    damaged[damage.below(len) as usize] ^= 1 << damage.below(8);
    damaged.truncate((damage.below(2 * len) as usize).max(20));
    let usual = segment::parse_usual_abbreviated(&damaged).map(text_of);
    assert!(usual.is_none() || usual == general(&damaged), "{damaged:?}");
}

/// Packets in both directions over a path that delays all and loses some of them.
struct Abbreviated {
    now: Instant,
    hosts: [Host; 2],
    /// Arrival, receiving host and packet.
    in_transit: Vec<(Instant, usize, Vec<u8>)>,
    loss: f64,
    random: Stream,
    damage: Stream,
    /// Sequence number of the left host's SYN.
    iss: Option<Seq>,
    described: usize,
}

impl Abbreviated {
    fn new(seed: u64, recipe_name: &str, profile: &Profile, loss: f64) -> Self {
        let hosts = [LEFT, RIGHT].map(|addr| {
            let (profile, recipe) = (profile.clone(), recipe(recipe_name));
            Host::new(HostConfig { addrs: vec![addr], mtu: 1500, profile, recipe, seed })
        });
        Self {
            now: Instant::from_secs(1),
            hosts,
            in_transit: Vec::new(),
            loss,
            random: Stream::new(seed, "abbreviated"),
            damage: Stream::new(seed, "damage"),
            iss: None,
            described: 0,
        }
    }

    fn send(&mut self) {
        for side in 0..2 {
            let mut packet = Vec::new();
            while self.hosts[side].poll_abbreviated_packet(self.now, &mut packet) {
                check_parsers(&packet, &mut self.damage);
                if side == 0 {
                    self.check(&packet);
                }
                if self.random.unit() >= self.loss {
                    self.in_transit.push((self.now + DELAY, 1 - side, packet.clone()));
                }
            }
        }
    }

    /// The text has the position of its sequence number.
    fn check(&mut self, packet: &[u8]) {
        let segment = parse(packet);
        let iss = *self.iss.get_or_insert(segment.seq);
        let offset = segment.seq.offset(iss, LENGTH / 2).unwrap();
        match segment.payload {
            Text::Known(known) => {
                assert_eq!(known.start(), FIRST + offset - 1);
                assert!(packet.len() <= 80, "{} bytes for {}", packet.len(), known.len());
                self.described += 1;
            }
            text @ Text::Bytes(bytes) => {
                let start = FIRST + offset.saturating_sub(1);
                assert_eq!(
                    text.to_vec(),
                    Text::Known(Known::new(start..start + bytes.len() as u64)).to_vec()
                );
            }
        }
    }

    /// Waits for the next arrival or timer.
    fn step(&mut self) {
        let arrival = self.in_transit.first().map(|(at, ..)| *at);
        let timers = self.hosts.iter().filter_map(Host::next_deadline);
        self.now = timers.chain(arrival).min().unwrap().max(self.now);
        while self.in_transit.first().is_some_and(|(at, ..)| *at <= self.now) {
            let (_, side, packet) = self.in_transit.remove(0);
            self.hosts[side].handle_abbreviated_packet(self.now, &packet);
        }
        for host in &mut self.hosts {
            host.handle_deadline(self.now);
        }
        self.send();
    }
}

#[test]
fn abbreviated_packets_carry_positions_of_their_text() {
    for (seed, recipe, profile) in [(1, "newreno", "default"), (2, "sack", "linux"), (3, "reno", "freebsd")] {
        for loss in [0.0, 0.05] {
            let profile = Profile::by_name(profile).unwrap();
            let mut run = Abbreviated::new(seed, recipe, &profile, loss);
            let options = SocketOptions { nodelay: true, ..SocketOptions::of(&profile) };
            let listener = run.hosts[1].listen((RIGHT, 80).into(), 1, options.clone()).unwrap();
            let sender = run.hosts[0].connect(run.now, None, (RIGHT, 80).into(), options).unwrap();
            let mut receiver: Option<ConnId> = None;
            let (mut written, mut read) = (FIRST, FIRST);
            run.send();
            while read < FIRST + LENGTH {
                assert!(run.now < Instant::from_secs(600), "stalled at {}", read - FIRST);
                run.step();
                // Pieces of up to 2,000 bytes, of which some are too short to be abbreviated.
                let end = (written + 1 + run.random.below(2_000)).min(FIRST + LENGTH);
                if run.hosts[0].connection(sender).unwrap().state().is_synchronized() && end > written {
                    let taken = run.hosts[0].write_known(run.now, sender, Known::new(written..end));
                    written += taken.unwrap_or(0) as u64;
                    run.send();
                }
                receiver = receiver.or_else(|| run.hosts[1].accept(listener));
                let Some(receiver) = receiver else { continue };
                loop {
                    let mut bytes = [0; 5_000];
                    let expected = Known::new(read..read + 5_000);
                    let count = match run.hosts[1].read_known(receiver, 5_000) {
                        Some(known) => {
                            assert_eq!(known.start(), read);
                            known.len()
                        }
                        None => match run.hosts[1].read(receiver, &mut bytes) {
                            Ok(count) => {
                                assert_eq!(expected.matching_len(&bytes[..count]), count);
                                count
                            }
                            Err(_) => break,
                        },
                    };
                    read += count as u64;
                }
                run.send();
            }
            assert!(run.described > 100, "{} abbreviated packets", run.described);
        }
    }
}
