//! Executes a random program against two hosts: user calls, steps in time, and packets that arrive, are lost
//! or are forged, in any order. No host may panic, all totals must be consistent, and every connection must
//! end eventually.

use airtcp::host::{ConnId, Host, HostConfig, ListenId};
use airtcp::profile::{MtuProbing, Profile};
use airtcp::recovery::Recipe;
use airtcp::tcp::{KeepAlive, Linger, Patience, SocketOptions, Threshold};
use airwire::time::{Duration, Instant};

use super::exchange::audit;
use super::hostile::{Draw, Eavesdropper, ForgeryScope};
use super::pair::{LEFT, Peer, RIGHT};

const RECIPES: [&str; 6] =
    ["tahoe", "reno", "newreno", "sack", "sack+limited-transmit+frto", "newreno+ecn+liw"];

struct Program<'a, D> {
    draw: &'a mut D,
    now: Instant,
    hosts: [Host; 2],
    ids: Vec<(Peer, ConnId)>,
    listeners: Vec<(Peer, ListenId)>,
    /// Packets in transit, each with the side that receives it.
    wire: Vec<(Peer, Vec<u8>)>,
    eavesdropper: Eavesdropper,
}

/// Runs a program of `calls` calls. An error names an inconsistent total, or the host that does not end.
pub fn run(draw: &mut impl Draw, calls: u32) -> Result<(), String> {
    let mut host = |addr| {
        let profile = profile(draw);
        let recipe: Recipe = draw.pick(&RECIPES).parse().unwrap_or_default();
        Host::new(HostConfig { addrs: vec![addr], mtu: 1500, profile, recipe, seed: 7 })
    };
    let hosts = [host(LEFT), host(RIGHT)];
    let mut program = Program {
        draw,
        now: Instant::from_secs(1),
        hosts,
        ids: Vec::new(),
        listeners: Vec::new(),
        wire: Vec::new(),
        eavesdropper: Eavesdropper::default(),
    };
    for _ in 0..calls {
        program.call();
        // Sometimes several calls happen before a packet can leave.
        if !program.draw.one_in(4) {
            program.drain();
        }
        program.audit()?;
    }
    program.close_all()
}

fn profile(draw: &mut impl Draw) -> Profile {
    let name = draw.pick(&Profile::NAMES);
    let mut profile = Profile::by_name(name).unwrap_or_default();
    // Fewer retries, so that a connection without a peer ends soon.
    (profile.timers.retries, profile.handshake.syn_retries) =
        (profile.timers.retries.min(8), profile.handshake.syn_retries.min(4));
    profile
}

impl<D: Draw> Program<'_, D> {
    fn call(&mut self) {
        let side = self.draw.pick(&[Peer::Left, Peer::Right]);
        match self.draw.below(20) {
            0 => self.connect(side),
            1 => self.listen(side),
            2 => self.accept(),
            3 if self.draw.one_in(4) => self.unlisten(),
            4..=6 => self.write(),
            7 | 8 => self.read(),
            9 => self.shut_down(),
            10 => self.close(),
            11 if self.draw.one_in(4) => self.on_connection(|host, id, _| host.abort(id)),
            12 => self.set_options(side),
            13 | 14 => self.advance(),
            15 => self.forge(side),
            _ => self.deliver(),
        }
    }

    fn connect(&mut self, side: Peer) {
        let options = self.options(side);
        let (ip, remote) = addresses(side);
        let port = self.draw.pick(&[0, 1000, 80]);
        let local = self.draw.one_in(2).then(|| (ip, port).into());
        let to = (remote, self.draw.pick(&[80, 1000])).into();
        if let Ok(id) = self.hosts[side as usize].connect(self.now, local, to, options) {
            self.ids.push((side, id));
        }
    }

    fn listen(&mut self, side: Peer) {
        let options = self.options(side);
        let addr = (addresses(side).0, self.draw.pick(&[80, 1000])).into();
        let backlog = self.draw.below(4) as usize;
        if let Ok(id) = self.hosts[side as usize].listen(addr, backlog, options) {
            self.listeners.push((side, id));
        }
    }

    /// Accepts one connection at each listener.
    fn accept(&mut self) {
        for (side, listener) in self.listeners.clone() {
            if let Some(id) = self.hosts[side as usize].accept(listener) {
                self.ids.push((side, id));
            }
        }
    }

    fn unlisten(&mut self) {
        if let Some((side, listener)) = self.listeners.pop() {
            self.hosts[side as usize].unlisten(listener);
        }
    }

    fn write(&mut self) {
        let now = self.now;
        let len = self.draw.below(20_000) as usize;
        self.on_connection(|host, id, _| {
            // Every result is allowed.
            let _ = host.write(now, id, &vec![b'a'; len]);
        });
    }

    fn read(&mut self) {
        let mut buffer = vec![0; self.draw.below(20_000) as usize];
        self.on_connection(|host, id, _| {
            let _ = host.read(id, &mut buffer);
        });
    }

    fn shut_down(&mut self) {
        let read = self.draw.one_in(3);
        self.on_connection(|host, id, _| {
            let _ = if read { host.shutdown_read(id) } else { host.shutdown_write(id) };
        });
    }

    fn close(&mut self) {
        let now = self.now;
        self.on_connection(|host, id, is_closed| {
            host.close(now, id);
            *is_closed = true;
        });
    }

    /// Sets the options of a connection, or sometimes of the newest listener.
    fn set_options(&mut self, side: Peer) {
        let now = self.now;
        let options = self.options(side);
        match self.listeners.last() {
            Some((side, id)) if self.draw.one_in(4) => {
                self.hosts[*side as usize].set_listen_options(*id, options);
            }
            _ => self.on_connection(|host, id, _| host.set_options(now, id, options)),
        }
    }

    /// Forges a packet of `side`, and delivers it to the other side.
    fn forge(&mut self, side: Peer) {
        if let Some(packet) = self.eavesdropper.forge(self.draw, side, ForgeryScope::Any) {
            self.hosts[side.other() as usize].handle_packet(self.now, &packet);
        }
    }

    /// Advances the clock to the next deadline, or by a random time.
    fn advance(&mut self) {
        let to = self.hosts.iter().filter_map(Host::next_deadline).min();
        let jump = Duration::from_micros(1 << self.draw.below(28));
        self.now = match to {
            Some(at) if self.draw.one_in(2) => self.now.max(at),
            _ => self.now + jump,
        };
        for host in &mut self.hosts {
            host.handle_deadline(self.now);
        }
    }

    /// Delivers, duplicates or loses packets: usually the oldest packet, sometimes any packet.
    fn deliver(&mut self) {
        for _ in 0..1 + self.draw.below(20) {
            if self.wire.is_empty() {
                return;
            }
            let at = if self.draw.one_in(8) { self.draw.below(self.wire.len() as u64) as usize } else { 0 };
            let (to, packet) = match self.draw.below(16) {
                0 => self.wire[at].clone(),
                1 => {
                    self.wire.remove(at);
                    continue;
                }
                _ => self.wire.remove(at),
            };
            self.hosts[to as usize].handle_packet(self.now, &packet);
            if !self.draw.one_in(4) {
                self.drain();
            }
        }
    }

    fn on_connection(&mut self, act: impl FnOnce(&mut Host, ConnId, &mut bool)) {
        if self.ids.is_empty() {
            return;
        }
        let at = self.draw.below(self.ids.len() as u64) as usize;
        let (side, id) = self.ids[at];
        let mut is_closed = false;
        act(&mut self.hosts[side as usize], id, &mut is_closed);
        if is_closed {
            self.ids.swap_remove(at);
        }
    }

    fn options(&mut self, side: Peer) -> SocketOptions {
        let draw = &mut *self.draw;
        let mut options = SocketOptions::of(self.hosts[side as usize].profile());
        options.nodelay = draw.one_in(2);
        options.cork = draw.one_in(8);
        options.max_seg = draw.pick(&[None, None, Some(88), Some(536), Some(1), Some(u16::MAX)]);
        options.send_buffer = draw.pick(&[options.send_buffer, 1, 3000, 100_000]);
        options.recv_buffer = draw.pick(&[None, Some(0), Some(1), Some(3000), Some(100_000)]);
        let wait = Linger::Wait(Duration::from_secs(1));
        options.linger = draw.pick(&[Linger::Default, wait, Linger::Abort]);
        if draw.one_in(4) {
            let threshold = |draw: &mut D| Threshold {
                retransmissions: draw.below(4) as u32,
                time: Duration::from_secs(draw.below(10)),
            };
            options.patience = Some(Box::new(Patience {
                r1: draw.one_in(2).then(|| threshold(draw)),
                r2: draw.one_in(2).then(|| threshold(draw)),
                syn_r2: draw.one_in(2).then(|| threshold(draw)),
                user_timeout: draw.one_in(2).then(|| Duration::from_millis(draw.below(20_000))),
            }));
        }
        options.pmtu_discovery = draw.one_in(2);
        options.mtu_probing = draw.pick(&[MtuProbing::Off, MtuProbing::OnLoss, MtuProbing::Always]);
        if draw.one_in(4) {
            let idle = Duration::from_secs(1 + draw.below(100));
            options.keepalive = Some(KeepAlive { idle, interval: Duration::from_secs(1), probes: 2 });
        }
        options
    }

    fn drain(&mut self) {
        for side in [Peer::Left, Peer::Right] {
            let mut packet = Vec::new();
            while self.hosts[side as usize].poll_packet(self.now, &mut packet) {
                self.eavesdropper.observe(side, &packet);
                self.wire.push((side.other(), packet.clone()));
            }
        }
    }

    fn audit(&self) -> Result<(), String> {
        let mut connections =
            self.ids.iter().filter_map(|(side, id)| self.hosts[*side as usize].connection(*id));
        connections.try_for_each(audit)
    }

    /// Closes everything and delivers no more packets, so that the remaining connections must time out.
    fn close_all(mut self) -> Result<(), String> {
        let now = self.now;
        for (side, listener) in std::mem::take(&mut self.listeners) {
            self.hosts[side as usize].unlisten(listener);
        }
        for (side, id) in std::mem::take(&mut self.ids) {
            self.hosts[side as usize].close(now, id);
        }
        self.drain();
        for (i, host) in self.hosts.iter_mut().enumerate() {
            let mut packet = Vec::new();
            let mut steps = 0;
            while let Some(at) = host.next_deadline() {
                self.now = self.now.max(at);
                host.handle_deadline(self.now);
                while host.poll_packet(self.now, &mut packet) {}
                steps += 1;
                if steps > 100_000 {
                    return Err(format!("host {i} never comes to rest"));
                }
            }
            if host.connections() > 0 {
                return Err(format!("{} connections left behind at host {i}", host.connections()));
            }
        }
        Ok(())
    }
}

fn addresses(side: Peer) -> (std::net::IpAddr, std::net::IpAddr) {
    match side {
        Peer::Left => (LEFT, RIGHT),
        Peer::Right => (RIGHT, LEFT),
    }
}
