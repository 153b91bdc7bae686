//! The cost of an ACK with arbitrary SACK blocks: the number of segments of the in-flight list that it
//! visits.

use std::net::IpAddr;

use airwire::options::{Layout, Options};
use airwire::segment::{self, Ecn, Flags, Header};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use crate::host::{ConnId, Host, HostConfig};
use crate::profile::Profile;
use crate::recovery::Recipe;
use crate::tcp::SocketOptions;

const HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
const IRS: Seq = Seq(5000);

/// A sending host, and a peer that sends arbitrary ACKs.
struct Victim {
    now: Instant,
    host: Host,
    id: ConnId,
    iss: Seq,
}

impl Victim {
    /// Opens a connection. The peer offers this MSS and the largest possible window.
    fn open(recipe: &str, mss: u16) -> Self {
        let profile = Profile::by_name("linux").unwrap();
        let options = SocketOptions { nodelay: true, ..SocketOptions::of(&profile) };
        let recipe: Recipe = recipe.parse().unwrap();
        let mut host = Host::new(HostConfig { addrs: vec![HOST], mtu: 1500, profile, recipe, seed: 1 });
        let now = Instant::from_secs(1);
        let id = host.connect(now, Some((HOST, 80).into()), (PEER, 4000).into(), options).unwrap();
        let mut victim = Self { now, host, id, iss: Seq(0) };
        victim.send();
        let offer =
            Options { mss: Some(mss), window_scale: Some(14), sack_permitted: true, ..Options::default() };
        victim.receive(Flags::SYN.with(Flags::ACK), 0, 1, 65_535, &offer);
        victim
    }

    fn receive(&mut self, flags: Flags, seq: u64, ack: u64, window: u16, options: &Options) {
        let header = Header {
            src: (PEER, 4000).into(),
            dst: (HOST, 80).into(),
            seq: IRS.at(seq),
            ack: self.iss.at(ack),
            flags,
            window,
            ecn: Ecn::NotEct,
            tos: 0,
            ttl: 64,
            dont_fragment: true,
            ident: 0,
        };
        let (mut bytes, mut packet) = (vec![], vec![]);
        options.write(Layout::Linux, &mut bytes);
        segment::emit(&mut packet, &header, &bytes, (&[], &[]));
        self.host.handle_packet(self.now, &packet);
        self.send();
    }

    fn ack(&mut self, ack: u64, blocks: &[(u64, u64)]) {
        let mut options = Options::default();
        for (start, end) in blocks {
            options.sack.push(self.iss.at(*start), self.iss.at(*end));
        }
        self.receive(Flags::ACK, 1, ack, 65_535, &options);
    }

    fn send(&mut self) {
        let mut packet = vec![];
        while self.host.poll_packet(self.now, &mut packet) {
            let segment = segment::parse(&packet).unwrap();
            if segment.flags.contains(Flags::SYN) {
                self.iss = segment.seq;
            }
        }
    }

    /// Advances the clock and runs the timers that are due.
    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.host.handle_deadline(self.now);
        self.send();
    }

    /// Runs slow start until `segments` segments are in flight, or no more are allowed.
    fn fill(&mut self, segments: usize) {
        let data = vec![b'y'; 4 << 20];
        let _ = self.host.write(self.now, self.id, &data);
        self.send();
        while self.in_flight() < segments {
            let (before, max) = (self.in_flight(), self.flight().max());
            self.wait(Duration::from_millis(1));
            // Acknowledge every second segment, as receivers do.
            let ends: Vec<u64> = self.flight().iter().map(|sent| sent.end).skip(1).step_by(2).collect();
            ends.into_iter().for_each(|end| self.ack(end, &[]));
            let _ = self.host.write(self.now, self.id, &data);
            self.send();
            if self.in_flight() <= before || self.flight().max() == max {
                break;
            }
        }
    }

    fn flight(&self) -> &crate::flight::Flight {
        self.host.connection(self.id).unwrap().flight()
    }

    fn in_flight(&self) -> usize {
        self.flight().len()
    }

    /// Returns the maximum and the mean number of list visits per ACK. Visits on behalf of the segments that
    /// the ACK releases are included.
    fn cost(&mut self, acks: u64, mut ack: impl FnMut(&mut Self, u64)) -> (u64, f64) {
        let (before, mut most) = (self.flight().steps(), 0);
        for n in 0..acks {
            let before = self.flight().steps();
            ack(self, n);
            most = most.max(self.flight().steps() - before);
        }
        (most, (self.flight().steps() - before) as f64 / acks as f64)
    }
}

/// Upper bound on the mean cost of an ACK, with any number of segments in flight: slightly more than it
/// delivers.
const MAX_MEAN_COST: f64 = 40.0;
/// Maximum number of segments in flight, of any size, with the send buffer of these tests.
const MAX_IN_FLIGHT: usize = 8192;

const RECIPES: [&str; 4] = ["sack", "sack+rack+cubic", "sack+blanton-allman", "linux"];

#[test]
fn small_segments_in_flight_are_limited_by_number() {
    let mut small = Victim::open("sack", 64);
    small.fill(usize::MAX);
    assert_eq!(small.in_flight(), MAX_IN_FLIGHT);
    // With segments of an ordinary size, the send buffer is the limit.
    let mut ordinary = Victim::open("sack", 536);
    ordinary.fill(usize::MAX);
    let bytes = ordinary.flight().outstanding().bytes;
    assert!(bytes > (4 << 20) - 536, "{bytes} bytes in {} segments", ordinary.in_flight());
}

#[test]
fn reneging_costs_few_steps_per_ack() {
    for recipe in RECIPES {
        let mut victim = Victim::open(recipe, 64);
        victim.fill(6000);
        let n = victim.in_flight() as u64;
        assert!(n > 6000, "{n} segments in flight");
        let (most, mean) = victim.cost(1000, |victim, _| {
            let (end, max) = (victim.flight().head().unwrap().end, victim.flight().max());
            victim.now += Duration::from_micros(700);
            // All but one segment are SACKed, and the ACK stops just below them.
            victim.ack(end, &[(end + 1, max)]);
        });
        println!("{recipe}: reneging: {mean} steps for an ACK, {most} at most, with {n} in flight");
        assert!(mean < MAX_MEAN_COST, "{recipe}: {mean} steps for an ACK");
        assert!(most < 4 * n, "{recipe}: {most} steps for one ACK");
    }
}

#[test]
fn repeated_sack_blocks_cost_few_steps_per_ack() {
    for recipe in RECIPES {
        let mut victim = Victim::open(recipe, 64);
        victim.fill(6000);
        let (una, end) = (victim.flight().una(), victim.flight().head().unwrap().end);
        // Everything but the head has arrived. Then repeat the same blocks, each time with a D-SACK of a
        // single byte.
        let max = victim.flight().max();
        victim.ack(una, &[(end + 1, max)]);
        let (_, mean) = victim.cost(1000, |victim, n| {
            victim.now += Duration::from_micros(700);
            victim.ack(una, &[(una - 1 - n % 2, una - n % 2), (end + 1, max)]);
        });
        println!("{recipe}: repeated: {mean} steps for an ACK");
        assert!(mean < MAX_MEAN_COST, "{recipe}: {mean} steps for an ACK");
        // The same during the go-back-N pass that a timeout starts.
        victim.wait(Duration::from_secs(2));
        let (_, mean) = victim.cost(1000, |victim, _| {
            victim.now += Duration::from_micros(700);
            victim.ack(una, &[(end + 1, max)]);
        });
        println!("{recipe}: repeated after a timeout: {mean} steps for an ACK");
        assert!(mean < MAX_MEAN_COST, "{recipe}: {mean} steps for an ACK after a timeout");
    }
}

#[test]
fn sack_holes_cost_few_steps_per_ack() {
    for recipe in RECIPES {
        for descending in [false, true] {
            let mut victim = Victim::open(recipe, 64);
            // RACK without PRR retransmits most of the window with each of these ACKs, so the test takes
            // quadratic time.
            victim.fill(1000);
            let una = victim.flight().una();
            let mut odd: Vec<_> =
                victim.flight().iter().skip(1).step_by(2).map(|s| (s.start, s.end)).collect();
            if descending {
                odd.reverse();
            }
            let (_, mean) = victim.cost(odd.len() as u64, |victim, n| {
                victim.now += Duration::from_micros(100);
                victim.ack(una, &[odd[n as usize]]);
            });
            println!("{recipe}: holes, descending {descending}: {mean} steps for an ACK");
            assert!(mean < MAX_MEAN_COST, "{recipe}: {mean} steps for an ACK");
        }
    }
}
