//! Byte streams between two hosts arrive unchanged, whatever the path does to the packets.

use airtcp::host::{ConnId, IoError};
use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::tcp::{SocketOptions, State};
use airtcp_testkit::exchange::{Exchange, ExchangeSpec, Faults, Opening};
use airtcp_testkit::pair::{Impairments, LEFT, Pair, Peer, RIGHT};
use airtcp_testkit::sample::sample;
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

struct Flow {
    id: ConnId,
    to_send: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    ended: bool,
    closed: bool,
}

impl Flow {
    fn new(id: ConnId, to_send: Vec<u8>) -> Self {
        Self { id, to_send, sent: 0, received: vec![], ended: false, closed: false }
    }

    /// The application: writes as much as fits, reads what is available, and closes when both directions are
    /// complete.
    fn run(&mut self, pair: &mut Pair, side: Peer, read_at_most: usize) {
        if self.closed {
            return;
        }
        let now = pair.now;
        let host = pair.host(side);
        if self.sent < self.to_send.len() {
            match host.write(now, self.id, &self.to_send[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(IoError::WouldBlock) => {}
                Err(error) => panic!("{side:?} write at {now}: {error}"),
            }
            if self.sent == self.to_send.len() {
                host.shutdown_write(self.id).unwrap();
            }
        }
        let mut buffer = vec![0; read_at_most];
        match host.read(self.id, &mut buffer) {
            Ok(0) => self.ended = true,
            Ok(n) => self.received.extend(&buffer[..n]),
            Err(IoError::WouldBlock) => {}
            Err(error) => panic!("{side:?} read at {now}: {error}"),
        }
        if self.ended && self.sent == self.to_send.len() && !self.closed {
            self.closed = true;
            host.close(now, self.id);
        }
    }
}

fn data(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Stream::new(seed, "data");
    (0..len).map(|_| rng.bits() as u8).collect()
}

/// Runs a transfer in both directions and checks every byte. Returns the time it took.
fn transfer(
    seed: u64,
    recipe: &str,
    profile: &str,
    path: Impairments,
    bytes: (usize, usize),
    buffers: usize,
) -> Duration {
    let recipe: Recipe = recipe.parse().unwrap();
    let profile = Profile::by_name(profile).unwrap();
    let mut pair = Pair::new(seed, (&recipe, &recipe), (&profile, &profile), path);
    let options =
        SocketOptions { send_buffer: buffers, recv_buffer: Some(buffers), ..SocketOptions::of(&profile) };
    let listener = pair.right.listen((RIGHT, 80).into(), 5, options.clone()).unwrap();
    let (now, remote) = (pair.now, (RIGHT, 80).into());
    let id = pair.left.connect(now, Some((LEFT, 0).into()), remote, options).unwrap();
    let (there, back) = (data(seed, bytes.0), data(seed + 1, bytes.1));
    let mut left = Flow::new(id, there.clone());
    let mut right: Option<Flow> = None;
    let limit = now + Duration::from_secs(100_000);
    let mut steps = 0_u64;
    let mut before = (0, 0, None);
    loop {
        if pair.left.connection(left.id).is_some_and(|c| c.state() != State::SynSent) {
            left.run(&mut pair, Peer::Left, 4000);
        }
        if right.is_none() {
            right = pair.right.accept(listener).map(|id| Flow::new(id, back.clone()));
        }
        if let Some(right) = &mut right {
            // With a small buffer, the reader is slow as well.
            let slow = 700 + (steps % 3000) as usize;
            right.run(&mut pair, Peer::Right, if buffers < 1 << 20 { slow } else { buffers });
        }
        if left.ended && right.as_ref().is_some_and(|r| r.ended) {
            break;
        }
        steps += 1;
        let progress = (left.sent, left.received.len(), right.as_ref().map(|r| (r.sent, r.received.len())));
        let stuck = !pair.step() && progress == before;
        before = progress;
        assert!(!stuck, "deadlock at {}: {:?}", pair.now, pair.left.connection(left.id).map(|c| c.info()));
        assert!(
            pair.now < limit,
            "incomplete at the time limit: {:?}",
            pair.left.connection(left.id).map(|c| c.info())
        );
        assert!(steps < 30_000_000, "livelock at {}", pair.now);
    }
    assert_eq!(left.received, back, "right to left");
    let mut right = right.unwrap();
    assert_eq!(right.received, there, "left to right");
    let took = pair.now - Instant::from_secs(1);
    // The loop may have ended before both sides closed. After that all connections end, including those in
    // TIME-WAIT.
    left.run(&mut pair, Peer::Left, 1);
    right.run(&mut pair, Peer::Right, 1);
    while pair.step() {}
    assert_eq!((pair.left.connections(), pair.right.connections()), (0, 0), "connections left behind");
    took
}

const VARIANTS: [&str; 6] =
    ["tahoe", "reno", "newreno", "sack", "sack+limited-transmit", "newreno+limited-transmit+liw"];

#[test]
fn every_variant_transfers_over_lossless_path() {
    for recipe in VARIANTS {
        for profile in ["default", "linux", "freebsd"] {
            let path = Impairments::lossless(Duration::from_millis(20));
            let took = transfer(7, recipe, profile, path, (300_000, 10_000), 1 << 20);
            assert!(took < Duration::from_secs(2), "{recipe} {profile} took {took}");
        }
    }
}

#[test]
fn stream_arrives_exact_despite_all_impairments() {
    for seed in 0..40 {
        let mut rng = Stream::new(seed, "scenario");
        let path = Impairments {
            loss: rng.unit() * 0.15,
            duplicate: rng.unit() * 0.1,
            reorder: rng.unit() * 0.3,
            reorder_by: Duration::from_millis(rng.below(80)),
            truncate: rng.unit() * 0.02,
            corrupt: rng.unit() * 0.02,
            per_byte: Duration::from_nanos(rng.below(8000)),
            delay: Duration::from_millis(rng.below(60)),
            queue: 5 + rng.below(50) as usize,
            longest: None,
        };
        let recipe = VARIANTS[rng.below(6) as usize];
        let profile = ["default", "linux", "freebsd"][rng.below(3) as usize];
        let buffers = 1000 + rng.below(100_000) as usize;
        transfer(seed, recipe, profile, path, (60_000, 20_000), buffers);
    }
}

#[test]
fn time_based_senders_deliver_exact_stream_over_bad_paths() {
    let recipes = [
        "sack+pr",
        "newreno+pr",
        "reno+pr",
        "tahoe+pr",
        "sack+pr+prr",
        "sack+rack",
        "sack+prr",
        "sack+rack+prr",
        "sack+rack+prr+frto",
        "sack+pr+frto+limited-transmit",
        "sack+rack+loss-retransmission",
        "newreno+pr+receiver-window",
        "sack+rack+prr+receiver-window",
    ];
    for (number, recipe) in recipes.into_iter().enumerate() {
        for seed in sample(recipe, 0..12_u64, 4) {
            let path = Impairments {
                loss: 0.02 * (seed % 4) as f64,
                duplicate: 0.02 * (seed % 3) as f64,
                reorder: 0.1 * (seed % 3) as f64,
                reorder_by: Duration::from_millis([30, 400, 3000][(seed % 3) as usize]),
                delay: Duration::from_millis(40),
                per_byte: Duration::from_micros(4),
                queue: [6, 60][(seed % 2) as usize],
                ..Impairments::default()
            };
            let parsed: Recipe = recipe.parse().unwrap();
            let profile = Profile::default();
            let pair = Pair::new(100 * number as u64 + seed, (&parsed, &parsed), (&profile, &profile), path);
            let plan = ExchangeSpec {
                opening: Opening::Passive,
                eager: false,
                options: SocketOptions::of(&profile),
                bytes: [200_000, 20_000],
                read_at_most: 100_000,
                read_every: Duration::ZERO,
                faults: Faults::Fail,
            };
            let what = |error| format!("{recipe}, seed {seed}: {error}");
            let mut exchange = Exchange::new(pair, plan).unwrap();
            exchange.complete(Duration::from_secs(3600)).map_err(what).unwrap();
            exchange.close_all().map_err(what).unwrap();
        }
    }
}
