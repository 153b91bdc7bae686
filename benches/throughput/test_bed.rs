//! The set-up of one run: a namespace, a TUN device into it, and a receiver that uses the kernel's TCP.

#![expect(clippy::disallowed_methods, reason = "the receiver pauses between its reads")]

use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use airlink::netns::Namespace;
use airlink::reactor::{Clock, Interest, Reactor, Token, Wakeup};
use airlink::tun::{Tun, TunConfig};
use airwire::time::{Duration, Instant};
use anyhow::Context;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, SockaddrIn, accept4, bind, listen, recv,
    setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::addresses::{KERNEL, MSS, MTU, PORT};
use crate::meter::{Count, thread_cpu};

/// Value for SO_RCVBUFFORCE, which the kernel doubles. Far above the path's bandwidth-delay product.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Segmentation offload of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offload {
    /// Each write carries up to 64 kB, which the device splits into segments (TSO).
    On,
    /// Each write carries one segment.
    Off,
}

pub(crate) struct TestBed {
    // The first field, so that the device is dropped before its namespace.
    pub(crate) tun: Tun,
    pub(crate) namespace: Namespace,
    pub(crate) clock: Clock,
    reactor: Reactor,
}

impl TestBed {
    pub(crate) fn new(clock: Clock, offload: Offload) -> anyhow::Result<Self> {
        let namespace = Namespace::create()?;
        let prefix = format!("{KERNEL}/24").parse().context("the address of the device")?;
        let tun = Tun::open(&TunConfig {
            namespace: Some(namespace.path().to_path_buf()),
            addrs: vec![prefix],
            mtu: MTU,
            offload: offload == Offload::On,
            ..TunConfig::default()
        })?;
        let mut reactor = Reactor::new(clock)?;
        reactor.register(&tun, Token(0), Interest::Read)?;
        Ok(Self { tun, namespace, clock, reactor })
    }

    /// Waits for a packet from the kernel, at most until `until`. Returns false on timeout.
    pub(crate) fn wait(&mut self, until: Instant) -> anyhow::Result<bool> {
        loop {
            match self.reactor.wait(Some(until))? {
                [] => {}
                events => return Ok(events.contains(&Wakeup::Readable(Token(0)))),
            }
        }
    }

    /// Makes `wait` watch this device instead of the test bed's own.
    pub(crate) fn watch(&mut self, tun: &Tun) -> anyhow::Result<()> {
        self.reactor.deregister(&self.tun, Token(0))?;
        self.reactor.register(tun, Token(0), Interest::Read)?;
        Ok(())
    }
}

/// Pause of the receiver after each complete read. At 10 Gbit/s a sixteenth of its buffer fills in this time.
/// A blocking `recv` would wake the thread for every other segment, in the middle of the sender's `write`.
const READ_PAUSE: std::time::Duration = std::time::Duration::from_micros(200);

/// A thread that accepts one connection and discards its data. Dropping the receiver ends the thread.
pub(crate) struct Receiver {
    bytes: Arc<AtomicU64>,
    /// CPU time of the thread in nanoseconds.
    cpu: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    pub(crate) fn start(namespace: &Namespace) -> anyhow::Result<Self> {
        let listener = namespace.enter(listener)??;
        let bytes = Arc::new(AtomicU64::new(0));
        let cpu = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::Builder::new().name("receiver".to_owned()).spawn({
            let (bytes, cpu, stop) = (Arc::clone(&bytes), Arc::clone(&cpu), Arc::clone(&stop));
            move || receive(&listener, &bytes, &cpu, &stop)
        })?;
        Ok(Self { bytes, cpu, stop, thread: Some(thread) })
    }

    /// Returns the amounts transferred, derived from the received payload, for senders that do not count packets.
    pub(crate) fn count(&self) -> Count {
        let payload = self.bytes();
        Count { packets: payload / MSS as u64, payload, retransmissions: None, receiver: self.cpu() }
    }

    /// Returns the thread's CPU time, as of its last pause.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.cpu.load(Ordering::Relaxed)))
    }

    /// Returns the number of payload bytes that the application has read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the receiver has already been reported on stderr.
            let _ = thread.join();
        }
    }
}

fn listener() -> nix::Result<OwnedFd> {
    let listener = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // Before listen(2): accepted sockets inherit the size, and it determines the window scale.
    setsockopt(&listener, sockopt::RcvBufForce, &RECEIVE_BUFFER)?;
    // A timeout makes the thread check `stop` regularly.
    setsockopt(&listener, sockopt::ReceiveTimeout, &TimeVal::milliseconds(100))?;
    bind(listener.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(KERNEL, PORT)))?;
    listen(&listener, Backlog::new(1)?)?;
    Ok(listener)
}

fn receive(listener: &OwnedFd, bytes: &AtomicU64, cpu: &AtomicU64, stop: &AtomicBool) {
    let connection = loop {
        match accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC) {
            Ok(connection) => break Connection(connection),
            Err(_) if stop.load(Ordering::Relaxed) => return,
            Err(_) => {}
        }
    };
    let mut buffer = vec![0; 1 << 20];
    // MSG_TRUNC makes TCP discard the data without copying it. The receiver must not be the bottleneck.
    loop {
        match recv(connection.0, &mut buffer, MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT) {
            Ok(0) => return,
            Ok(len) => {
                bytes.fetch_add(len as u64, Ordering::Relaxed);
            }
            Err(Errno::EAGAIN | Errno::EINTR) if !stop.load(Ordering::Relaxed) => {
                cpu.store(thread_cpu().as_nanos(), Ordering::Relaxed);
                thread::sleep(READ_PAUSE);
            }
            Err(_) => return,
        }
    }
}

/// The descriptor that `accept4` returns as a bare number.
struct Connection(std::os::fd::RawFd);

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = nix::unistd::close(self.0);
    }
}
