//! Two hosts, joined by an impaired path: the smallest setup for property tests and fuzzing.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use airtcp::host::{Host, HostConfig};
use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airwire::piece::Piece;
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

use super::pieces::split;

/// Impairments of a path, the same in both directions.
#[derive(Clone, Debug, Default)]
pub struct Impairments {
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet is duplicated.
    pub duplicate: f64,
    /// Probability that a packet is delayed by up to `reorder_by`.
    pub reorder: f64,
    /// Maximum delay of such a packet.
    pub reorder_by: Duration,
    /// Probability that a packet is truncated.
    pub truncate: f64,
    /// Probability that a bit of a packet is flipped.
    pub corrupt: f64,
    /// Transmission time per byte. Zero means infinitely fast.
    pub per_byte: Duration,
    /// Time from the end of the transmission to the arrival.
    pub delay: Duration,
    /// Maximum number of packets in transit per direction. Further packets are lost.
    pub queue: usize,
    /// Length of the longest packet that the path delivers. Longer ones are lost without an ICMP error.
    pub longest: Option<usize>,
}

impl Impairments {
    /// Returns a path that only delays packets.
    pub fn lossless(delay: Duration) -> Self {
        Self { delay, queue: usize::MAX, ..Self::default() }
    }
}

/// How hosts are polled for packets to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Polled {
    /// Packet by packet.
    Packets,
    /// In pieces of several segments, which are split as the kernel does it.
    Pieces,
    /// Alternately. The value is true if the last poll was for a piece.
    Alternating(bool),
}

/// One of the two hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Peer {
    /// The host at [`LEFT`].
    Left,
    /// The host at [`RIGHT`].
    Right,
}

impl Peer {
    /// Returns the other host.
    pub const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// Returns the byte at `offset` of the stream that `side` sends.
pub fn stream_byte(side: Peer, offset: u64) -> u8 {
    let mixed = (offset + 1 + ((side as u64) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// Two hosts, their path, and the clock.
pub struct Pair {
    /// The virtual time.
    pub now: Instant,
    /// The host at [`LEFT`].
    pub left: Host,
    /// The host at [`RIGHT`].
    pub right: Host,
    /// Current impairments of the path.
    pub path: Impairments,
    rng: Stream,
    /// Packets in transit to each side, in order of arrival.
    arrivals: [VecDeque<Arrival>; 2],
    free_at: [Instant; 2],
    waiting: [usize; 2],
    sent: u64,
    /// Additional loss probability for the packets of one side.
    pub lossy: Option<(Peer, f64)>,
    /// How hosts are polled for packets to send.
    pub polled: Polled,
    /// If `Some`, records every packet that leaves a host, with its time and its sender.
    pub tap: Option<Vec<(Instant, Peer, Vec<u8>)>>,
}

#[derive(Debug)]
struct Arrival {
    at: Instant,
    order: u64,
    packet: Vec<u8>,
}

/// Address of the left host.
pub const LEFT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// Address of the right host.
pub const RIGHT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

impl Pair {
    /// Creates a pair. Recipes and profiles are for the left and the right host. All random choices depend on
    /// `seed`.
    pub fn new(
        seed: u64,
        recipes: (&Recipe, &Recipe),
        profiles: (&Profile, &Profile),
        path: Impairments,
    ) -> Self {
        let host = |addr, profile: &Profile, recipe: &Recipe, salt| {
            Host::new(HostConfig {
                addrs: vec![addr],
                mtu: 1500,
                profile: profile.clone(),
                recipe: recipe.clone(),
                seed: seed ^ salt,
            })
        };
        Self {
            now: Instant::from_secs(1),
            left: host(LEFT, profiles.0, recipes.0, 0x1ef7),
            right: host(RIGHT, profiles.1, recipes.1, 0x0019_4715),
            path,
            rng: Stream::new(seed, "path"),
            arrivals: Default::default(),
            free_at: [Instant::ZERO; 2],
            waiting: [0; 2],
            sent: 0,
            lossy: None,
            polled: Polled::Packets,
            tap: None,
        }
    }

    /// Returns the host of this side.
    pub fn host(&mut self, side: Peer) -> &mut Host {
        match side {
            Peer::Left => &mut self.left,
            Peer::Right => &mut self.right,
        }
    }

    pub(super) fn host_ref(&self, side: Peer) -> &Host {
        match side {
            Peer::Left => &self.left,
            Peer::Right => &self.right,
        }
    }

    /// Puts all packets that can leave now onto the path.
    pub fn drain(&mut self) {
        for side in [Peer::Left, Peer::Right] {
            let now = self.now;
            loop {
                let packets = self.poll(side);
                if packets.is_empty() {
                    break;
                }
                for packet in packets {
                    if let Some(tap) = &mut self.tap {
                        tap.push((now, side, packet.clone()));
                    }
                    self.send(side, packet);
                }
            }
        }
    }

    fn poll(&mut self, side: Peer) -> Vec<Vec<u8>> {
        let now = self.now;
        let for_piece = match &mut self.polled {
            Polled::Packets => false,
            Polled::Pieces => true,
            Polled::Alternating(last) => {
                *last = !*last;
                *last
            }
        };
        if for_piece {
            let mut piece = Piece::default();
            if self.host(side).poll_piece(now, &mut piece) { split(&piece) } else { Vec::new() }
        } else {
            let mut packet = Vec::new();
            if self.host(side).poll_packet(now, &mut packet) { vec![packet] } else { Vec::new() }
        }
    }

    /// Handles the next event. Returns `false` if no more events will follow.
    pub fn step(&mut self) -> bool {
        self.drain();
        let heads = [Peer::Left, Peer::Right]
            .into_iter()
            .filter_map(|to| self.arrivals[to as usize].front().map(|head| (head.at, head.order, to)));
        let arrival = heads.min();
        let deadlines = [self.left.next_deadline(), self.right.next_deadline()];
        let Some(next) = deadlines.into_iter().flatten().chain(arrival.map(|(at, ..)| at)).min() else {
            return false;
        };
        self.now = self.now.max(next);
        let now = self.now;
        if let Some((_, _, to)) = arrival.filter(|(at, ..)| *at <= now) {
            if let Some(arrival) = self.arrivals[to as usize].pop_front() {
                self.waiting[to.other() as usize] = self.waiting[to.other() as usize].saturating_sub(1);
                self.host(to).handle_packet(now, &arrival.packet);
            }
        } else {
            self.left.handle_deadline(now);
            self.right.handle_deadline(now);
        }
        self.drain();
        true
    }

    fn send(&mut self, from: Peer, packet: Vec<u8>) {
        let path = self.path.clone();
        if path.longest.is_some_and(|longest| packet.len() > longest) {
            return;
        }
        if self.rng.chance(path.loss) || self.waiting[from as usize] >= path.queue.max(1) {
            return;
        }
        if let Some((_, loss)) = self.lossy.filter(|(side, _)| *side == from)
            && self.rng.chance(loss)
        {
            return;
        }
        let second = self.rng.chance(path.duplicate).then(|| packet.clone());
        for mut packet in [Some(packet), second].into_iter().flatten() {
            if self.rng.chance(path.truncate) {
                packet.truncate(self.rng.below(packet.len() as u64) as usize);
            }
            if self.rng.chance(path.corrupt) && !packet.is_empty() {
                let at = self.rng.below(packet.len() as u64) as usize;
                packet[at] ^= 1 << self.rng.below(8);
            }
            let start = self.now.max(self.free_at[from as usize]);
            self.free_at[from as usize] = start + path.per_byte * packet.len() as u64;
            let mut at = self.free_at[from as usize] + path.delay;
            if self.rng.chance(path.reorder) {
                at += Duration::from_nanos(self.rng.below(path.reorder_by.as_nanos().max(1)));
            }
            self.sent += 1;
            self.waiting[from as usize] += 1;
            let queue = &mut self.arrivals[from.other() as usize];
            let index = queue.iter().rposition(|earlier| earlier.at <= at).map_or(0, |before| before + 1);
            queue.insert(index, Arrival { at, order: self.sent, packet });
        }
    }
}
