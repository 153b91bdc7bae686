//! Raw packets to a host that listens and connects, while time advances: arbitrary bytes, IP and
//! TCP headers with valid checksums and arbitrary fields, and answers to packets of the host.
//!
//! For any input, the host sends complete packets of at most the MTU, its internal sums are
//! consistent, and every connection ends.

#![cfg_attr(fuzzing, no_main)]

mod draw;
mod target;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use airtcp::host::{ConnId, Host, HostConfig, ListenId};
use airtcp::profile::Profile;
use airtcp::tcp::SocketOptions;
use airtcp_testkit::exchange::audit;
use airtcp_testkit::hostile::Draw;
use airwire::segment::{self, Ecn, Flags, Header};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};
use arbitrary::Unstructured;

target::run!(run);

const MTU: usize = 1500;
const OURS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2))];
const THEIRS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1))];
const PORTS: [u16; 3] = [80, 81, 5000];
const RECIPES: [&str; 4] = ["newreno", "sack+limited-transmit", "linux", "newreno+ecn+eifel"];
/// Maximum number of packets sent in one step. A window has hundreds of segments; a host that
/// answers its own packets would never stop.
const MAX_BURST: usize = 20_000;

struct World<'a> {
    draw: draw::Input<'a>,
    now: Instant,
    host: Host,
    listeners: Vec<ListenId>,
    ids: Vec<ConnId>,
    /// The host's latest packets: their addresses and the numbers of a matching answer.
    sent: Vec<Sent>,
}

#[derive(Clone, Copy)]
struct Sent {
    from: SocketAddr,
    to: SocketAddr,
    ack: Seq,
    next: Seq,
}

fn run(data: &[u8]) {
    let mut draw = draw::Input(Unstructured::new(data));
    let mut profile = Profile::by_name(draw.pick(&Profile::NAMES)).unwrap_or_default();
    // Fewer retries, so that a connection without a peer ends soon.
    (profile.timers.retries, profile.handshake.syn_retries) =
        (profile.timers.retries.min(8), profile.handshake.syn_retries.min(4));
    let recipe = draw.pick(&RECIPES).parse().expect("these recipes are in the catalogue");
    let host = Host::new(HostConfig { addrs: OURS.to_vec(), mtu: MTU, profile, recipe, seed: 7 });
    let now = Instant::from_secs(1);
    let (listeners, ids, sent) = (Vec::new(), Vec::new(), Vec::new());
    let mut world = World { draw, now, host, listeners, ids, sent };
    world.open();
    // The length of the input limits the number of steps.
    for _ in 0..data.len().min(1000) {
        if world.draw.0.is_empty() {
            break;
        }
        world.step();
        world.drain();
        world.audit();
    }
    world.wind_up();
}

impl World<'_> {
    fn open(&mut self) {
        let options = SocketOptions::of(self.host.profile());
        for (ours, port) in OURS.into_iter().flat_map(|ours| PORTS.map(|port| (ours, port))).take(4) {
            let backlog = self.draw.below(4) as usize;
            let listening = self.host.listen((ours, port).into(), backlog, options.clone());
            self.listeners.extend(listening.ok());
        }
        for theirs in THEIRS {
            let connecting = self.host.connect(self.now, None, (theirs, 80).into(), options.clone());
            self.ids.extend(connecting.ok());
        }
        self.drain();
    }

    fn step(&mut self) {
        let now = self.now;
        match self.draw.below(12) {
            0 => {
                let len = self.draw.below(100) as usize;
                let packet = self.random_bytes(len);
                self.host.handle_packet(now, &packet);
            }
            1..=5 => {
                let packet = self.segment();
                self.host.handle_packet(now, &packet);
            }
            6 => self.now += Duration::from_micros(self.draw.below(5_000_000)),
            7 => {
                if let Some(at) = self.host.next_deadline() {
                    self.now = now.max(at);
                    self.host.handle_deadline(self.now);
                }
            }
            8 => {
                let accepted = self.listeners.iter().filter_map(|listener| self.host.accept(*listener));
                self.ids.extend(accepted);
            }
            9 => {
                let data = vec![b'a'; self.draw.below(20_000) as usize];
                // The call may fail: every result is valid.
                self.on_connection(|host, id| {
                    let _ = host.write(now, id, &data);
                });
            }
            10 => {
                let mut buffer = vec![0; self.draw.below(20_000) as usize];
                self.on_connection(|host, id| {
                    let _ = host.read(id, &mut buffer);
                });
            }
            _ => {
                let half = self.draw.one_in(2);
                self.on_connection(|host, id| match half {
                    true => {
                        let _ = host.shutdown_write(id);
                    }
                    false => host.close(now, id),
                });
            }
        }
        // Handle every deadline that has been reached.
        while let Some(at) = self.host.next_deadline().filter(|at| *at <= self.now) {
            self.host.handle_deadline(at.max(now));
            self.drain();
        }
    }

    fn on_connection(&mut self, act: impl FnOnce(&mut Host, ConnId)) {
        if !self.ids.is_empty() {
            let id = self.draw.pick(&self.ids.clone());
            act(&mut self.host, id);
        }
    }

    fn random_bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.draw.below(256) as u8).collect()
    }

    /// Builds a segment with valid checksums. Most segments belong to a known connection and have
    /// numbers close to the expected ones.
    fn segment(&mut self) -> Vec<u8> {
        let known = if self.sent.is_empty() { None } else { Some(self.draw.pick(&self.sent.clone())) };
        let near = |draw: &mut draw::Input<'_>, number: Seq| match draw.below(4) {
            0 => Seq(draw.below(1 << 32) as u32),
            1 => Seq(number.0.wrapping_add(draw.below(70_000) as u32).wrapping_sub(35_000)),
            _ => number,
        };
        let stranger = self.draw.one_in(3);
        let (src, dst, seq, ack) = match known {
            Some(Sent { from, to, ack, next }) if !stranger => (to, from, ack, next),
            _ => {
                let family = self.draw.below(2) as usize;
                let src = (THEIRS[family], self.draw.below(1 << 16) as u16).into();
                (src, (OURS[family], self.draw.pick(&PORTS)).into(), Seq(0), Seq(0))
            }
        };
        let header = Header {
            src,
            dst,
            seq: near(&mut self.draw, seq),
            ack: near(&mut self.draw, ack),
            flags: match self.draw.below(4) {
                0 => Flags::SYN,
                1 => Flags(self.draw.below(1 << 9) as u16),
                _ => Flags::ACK,
            },
            window: self.draw.below(1 << 16) as u16,
            ecn: self.draw.pick(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ce]),
            tos: 0,
            ttl: 64,
            dont_fragment: self.draw.one_in(2),
            ident: 0,
        };
        let words = self.draw.below(11) as usize;
        let mut options = self.random_bytes(words * 4);
        if let (true, [kind, ..]) = (self.draw.one_in(2), options.as_mut_slice()) {
            *kind = self.draw.pick(&[2, 3, 4, 5, 8, 34, 253]);
        }
        let payload = vec![b'x'; self.draw.below(1400) as usize];
        let mut packet = Vec::new();
        segment::emit(&mut packet, &header, &options, (&payload, &[]));
        packet
    }

    fn drain(&mut self) {
        let mut packet = Vec::new();
        let mut packets = 0;
        while self.host.poll_packet(self.now, &mut packet) {
            packets += 1;
            assert!(packets < MAX_BURST, "the host does not stop sending at {}", self.now);
            assert!(packet.len() <= MTU, "a packet of {} bytes exceeds the MTU", packet.len());
            let segment = segment::parse(&packet).expect("the host sends valid segments");
            let next = Seq(segment.seq.0.wrapping_add(segment.seq_len() as u32));
            self.sent.push(Sent { from: segment.src, to: segment.dst, ack: segment.ack, next });
        }
        let old = self.sent.len().saturating_sub(16);
        self.sent.drain(..old);
    }

    fn audit(&self) {
        for connection in self.ids.iter().filter_map(|id| self.host.connection(*id)) {
            audit(connection).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// Closes everything and delivers no more packets. The remaining connections must give up by themselves.
    fn wind_up(mut self) {
        self.ids.extend(self.listeners.iter().filter_map(|listener| self.host.accept(*listener)));
        for listener in std::mem::take(&mut self.listeners) {
            self.host.unlisten(listener);
        }
        for id in std::mem::take(&mut self.ids) {
            self.host.close(self.now, id);
        }
        self.drain();
        let mut steps = 0;
        while let Some(at) = self.host.next_deadline() {
            self.now = self.now.max(at);
            self.host.handle_deadline(self.now);
            self.drain();
            steps += 1;
            assert!(steps < 100_000, "the host never becomes idle");
        }
        assert_eq!(self.host.connections(), 0, "connections remain after all timeouts");
    }
}
