//! The kernel's side: many exchanges in parallel, over one TUN device in a separate namespace.
//!
//! `write` on a TUN device returns when the kernel has processed the segment, including the socket. So
//! immediate answers can be read at once, and timers cause all later packets.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::Arc;

use airlink::netns::Namespace;
use airlink::reactor::{Clock, Interest, Reactor, Token};
use airlink::tun::{Tun, TunConfig};
use airwire::time::{Duration, Instant};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, setsockopt, socket,
    sockopt,
};
use nix::time::{ClockId, clock_gettime};

use crate::plan::{Call, Opening, Plan};
use crate::play::{LOCAL, Outcome, Play, Record, SEND_BUFFER, Stack};

/// Maximum time between two reads of the device.
const MAX_READ_INTERVAL: Duration = Duration::from_millis(2);
/// After a longer pause between two reads, the times of later packets are unknown.
const LATE_READ: Duration = Duration::from_millis(6);
/// Time between the starts of two exchanges.
const STAGGER: Duration = Duration::from_micros(700);

/// The result of an exchange with the kernel.
pub(crate) struct Played {
    pub record: Record,
    /// The start of the exchange on the kernel's clock (CLOCK_MONOTONIC). The kernel's timers expire when a tick of
    /// this clock begins.
    pub begun: Instant,
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// Whether the machine was late, so that the times are unreliable.
    pub late: bool,
}

/// A namespace with a TUN device and the default settings of distributions' kernels.
pub(crate) struct Kernel {
    namespace: Namespace,
    tun: Tun,
    peers: u32,
}

/// A running exchange.
struct Running {
    /// Index of its plan.
    number: usize,
    play: Play,
    begun: Instant,
    socket: Socket,
    late: bool,
}

struct Socket {
    listener: Option<TcpListener>,
    connection: Connection,
}

enum Connection {
    /// No connection has been accepted yet.
    Awaited,
    Open(TcpStream),
    /// Closed by the application.
    Closed,
}

/// The kernel's side of an exchange: the socket, and the device that carries the segments.
struct KernelSide<'a> {
    tun: &'a Tun,
    socket: &'a mut Socket,
    error: &'a mut Option<io::Error>,
}

impl Kernel {
    /// Creates the namespace and the device.
    pub(crate) fn new() -> Result<Self, String> {
        let namespace =
            Namespace::create().map_err(|error| format!("this test needs a network namespace: {error}"))?;
        // The defaults of distributions. This machine may use others. No metrics are kept between exchanges.
        let settings = [
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("net.ipv4.tcp_no_metrics_save", "1"),
            // Disables SACK compression, which delays ACKs by up to 1 ms. The clocks here are not precise
            // enough for that.
            ("net.ipv4.tcp_comp_sack_nr", "0"),
        ];
        for (key, value) in settings {
            namespace.sysctl(key, value).map_err(|error| error.to_string())?;
        }
        let config = TunConfig {
            namespace: Some(namespace.path().to_path_buf()),
            addrs: vec![format!("{LOCAL}/8").parse().map_err(|error| format!("{error}"))?],
            ..TunConfig::default()
        };
        let tun = Tun::open(&config).map_err(|error| error.to_string())?;
        Ok(Self { namespace, tun, peers: 0 })
    }

    /// Plays all plans, at most `at_once` in parallel.
    pub(crate) fn play(&mut self, plans: &[Arc<Plan>], at_once: usize) -> Result<Vec<Played>, String> {
        let Self { namespace, tun, peers } = self;
        let played = namespace.enter(|| {
            request_realtime_priority();
            Runner::new(tun, peers)?.run(plans, at_once)
        });
        played.map_err(|error| error.to_string())?.map_err(|error| format!("over the TUN device: {error}"))
    }
}

/// Requests real-time priority for this thread. Without permission, nothing changes.
fn request_realtime_priority() {
    let thread = nix::unistd::gettid().to_string();
    let _ = Command::new("chrt").args(["--fifo", "--pid", "1", &thread]).output();
}

/// Plays many exchanges over one device.
struct Runner<'a> {
    tun: &'a Tun,
    peers: &'a mut u32,
    reactor: Reactor,
    clock: Clock,
    /// The start of `clock`, on the kernel's clock.
    clock_start: Duration,
    /// The time of the next event or of the end of each exchange in `live`.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    live: Vec<Option<Running>>,
    by_peer: BTreeMap<Ipv4Addr, usize>,
    last_read: Instant,
    buffer: Vec<u8>,
}

impl<'a> Runner<'a> {
    fn new(tun: &'a Tun, peers: &'a mut u32) -> io::Result<Self> {
        let clock = Clock::start();
        let monotonic = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
        let monotonic =
            Duration::from_secs(monotonic.tv_sec() as u64) + Duration::from_nanos(monotonic.tv_nsec() as u64);
        let clock_start = monotonic - (clock.now() - Instant::ZERO);
        let mut reactor = Reactor::new(clock)?;
        reactor.register(tun, Token(0), Interest::Read)?;
        Ok(Self {
            tun,
            peers,
            reactor,
            clock,
            clock_start,
            due: BinaryHeap::new(),
            live: Vec::new(),
            by_peer: BTreeMap::new(),
            last_read: clock.now(),
            buffer: vec![0; 65_536],
        })
    }

    fn run(mut self, plans: &[Arc<Plan>], at_once: usize) -> io::Result<Vec<Played>> {
        let mut played: Vec<Option<Played>> = plans.iter().map(|_| None).collect();
        let (mut next, mut running) = (0, 0);
        let mut next_begin = self.clock.now();
        while next < plans.len() || running > 0 {
            let now = self.clock.now();
            let begin = (next < plans.len() && running < at_once).then_some(next_begin);
            let due = self.due.peek().map(|Reverse((at, _))| *at);
            let first = begin.into_iter().chain(due).min();
            self.read_packets(None)?;
            if first.is_none_or(|first| first > now) {
                let until = first.unwrap_or(now + MAX_READ_INTERVAL).min(now + MAX_READ_INTERVAL);
                self.reactor.wait(Some(until))?;
                continue;
            }
            if begin.is_some_and(|begin| begin <= now) {
                self.begin(next, &plans[next])?;
                (next, running) = (next + 1, running + 1);
                next_begin = now + STAGGER;
            } else if let Some(Reverse((_, index))) = self.due.pop()
                && let Some((number, done)) = self.advance(index)?
            {
                played[number] = Some(done);
                running -= 1;
            }
        }
        Ok(played.into_iter().flatten().collect())
    }

    /// Reads all packets that the kernel has sent. `answers` is the exchange that has just had an event, so
    /// packets of this exchange are immediate answers.
    fn read_packets(&mut self, answers: Option<usize>) -> io::Result<()> {
        let pause = self.clock.now() - self.last_read > LATE_READ;
        while let Some(len) = self.tun.recv(&mut self.buffer)? {
            let now = self.clock.now();
            let packet = &self.buffer[..len];
            if len < 40 || packet[0] >> 4 != 4 {
                continue;
            }
            let peer = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
            let Some(index) = self.by_peer.get(&peer).copied() else { continue };
            let Some(live) = &mut self.live[index] else { continue };
            let prompt = answers == Some(index);
            live.late |= pause && !prompt;
            live.play.observe(now - live.begun, prompt, packet);
        }
        self.last_read = self.clock.now();
        Ok(())
    }

    fn begin(&mut self, number: usize, plan: &Arc<Plan>) -> io::Result<()> {
        *self.peers += 1;
        let peer = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 1, 0, 0)) + *self.peers);
        let index = self.live.len();
        self.by_peer.insert(peer, index);
        let peer = SocketAddr::new(IpAddr::V4(peer), 5000);
        let begun = self.clock.now();
        let (socket, local) = Socket::open(plan.opening, peer)?;
        let play = Play::new(Arc::clone(plan), peer, local);
        self.due.push(Reverse((begun + play.gap(), index)));
        self.live.push(Some(Running { number, play, begun, socket, late: false }));
        self.read_packets(Some(index))
    }

    /// Plays the next event of an exchange, or ends it.
    fn advance(&mut self, index: usize) -> io::Result<Option<(usize, Played)>> {
        let Some(live) = &mut self.live[index] else { return Ok(None) };
        if live.play.is_over() {
            return self.end(index).map(Some);
        }
        let now = self.clock.now();
        let mut error = None;
        let mut side = KernelSide { tun: self.tun, socket: &mut live.socket, error: &mut error };
        live.play.step(now - live.begun, &mut side);
        self.due.push(Reverse((now + live.play.gap(), index)));
        error.map_or(Ok(()), Err)?;
        self.read_packets(Some(index))?;
        Ok(None)
    }

    fn end(&mut self, index: usize) -> io::Result<(usize, Played)> {
        // The caller has checked that the exchange is running.
        let live = self.live[index].take().expect("the exchange is running");
        let Play { peer, local, mut record, .. } = live.play;
        record.end = self.clock.now() - live.begun;
        if let IpAddr::V4(addr) = peer.addr.ip() {
            self.by_peer.remove(&addr);
        }
        live.socket.abort();
        self.tun.send(&peer.final_reset(local))?;
        let begun = live.begun + self.clock_start;
        Ok((live.number, Played { record, begun, local, peer: peer.addr, late: live.late }))
    }
}

impl Socket {
    fn open(opening: Opening, peer: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
        setsockopt(&socket, sockopt::ReuseAddr, &true)?;
        // The default of distributions. This machine may use another one. Root may set any algorithm.
        setsockopt(&socket, sockopt::TcpCongestion, &OsString::from("cubic"))?;
        setsockopt(&socket, sockopt::SndBufForce, &SEND_BUFFER)?;
        bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(LOCAL, 0)))?;
        match (opening, peer) {
            (Opening::Active, SocketAddr::V4(peer)) => {
                match connect(socket.as_raw_fd(), &SockaddrIn::from(peer)) {
                    Ok(()) | Err(Errno::EINPROGRESS) => {}
                    Err(errno) => return Err(errno.into()),
                }
                let stream = TcpStream::from(socket);
                let local = stream.local_addr()?;
                Ok((Self { listener: None, connection: Connection::Open(stream) }, local))
            }
            _ => {
                listen(&socket, Backlog::new(5)?)?;
                let listener = TcpListener::from(socket);
                let local = listener.local_addr()?;
                Ok((Self { listener: Some(listener), connection: Connection::Awaited }, local))
            }
        }
    }

    fn accept(&mut self) {
        if let (Some(listener), Connection::Awaited) = (&self.listener, &self.connection)
            && let Ok((stream, _)) = listener.accept()
            && stream.set_nonblocking(true).is_ok()
        {
            self.connection = Connection::Open(stream);
        }
    }

    /// Resets the connection, so that the kernel keeps no state of it.
    fn abort(self) {
        if let Connection::Open(stream) = &self.connection {
            linger_zero(stream);
        }
    }
}

fn linger_zero(stream: &TcpStream) {
    // An error means that the connection has ended, which does not matter.
    let _ = setsockopt(stream, sockopt::Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 });
}

impl Stack for KernelSide<'_> {
    fn deliver(&mut self, packet: &[u8]) {
        if let Err(error) = self.tun.send(packet) {
            *self.error = Some(error);
        }
        self.socket.accept();
    }

    fn call(&mut self, call: Call, read: &mut Vec<u8>) -> Outcome {
        self.socket.accept();
        let Connection::Open(stream) = &mut self.socket.connection else { return Outcome::Failed };
        let outcome = match call {
            Call::Write(len) => stream.write(&vec![b'x'; len as usize]),
            Call::Read(len) => {
                read.resize(len as usize, 0);
                let outcome = stream.read(read);
                read.truncate(*outcome.as_ref().unwrap_or(&0));
                outcome
            }
            Call::ShutdownWrite => stream.shutdown(Shutdown::Write).map(|()| 0),
            Call::NoDelay => stream.set_nodelay(true).map(|()| 0),
            Call::Close | Call::Abort => {
                if call == Call::Abort {
                    linger_zero(stream);
                }
                self.socket.connection = Connection::Closed;
                Ok(0)
            }
        };
        match outcome {
            Ok(count) => Outcome::Count(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Outcome::WouldBlock,
            Err(_) => Outcome::Failed,
        }
    }

    fn state(&self) -> Option<&'static str> {
        None
    }
}
