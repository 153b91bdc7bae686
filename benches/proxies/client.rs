//! The clients, identical for all programs. They run in the namespace of the calling thread.

#![expect(clippy::disallowed_methods, reason = "time is what is measured")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, socket};

use crate::exchange::{Buffers, Request, SOCKET_TIMEOUT, may_be_data_at};

/// Size of a small answer in bytes.
pub(crate) const ANSWER: u64 = 100;

/// Concurrent short connections, and the threads that share them.
const AT_ONCE: usize = 50;
const THREADS: usize = 2;

/// Returns the time that `streams` concurrent streams need for `request`, which each of them makes once.
pub(crate) fn streams(to: SocketAddrV4, request: Request, streams: u64) -> anyhow::Result<Duration> {
    let start = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..streams).map(|_| scope.spawn(|| stream(to, request))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a client returns its errors"))
    })?;
    Ok(start.elapsed())
}

fn stream(to: SocketAddrV4, request: Request) -> anyhow::Result<()> {
    let mut buffers = Buffers::new();
    let mut stream = TcpStream::connect(to).context("cannot connect")?;
    stream.set_read_timeout(Some(SOCKET_TIMEOUT))?;
    stream.set_write_timeout(Some(SOCKET_TIMEOUT))?;
    stream.write_all(&request.to_bytes()).context("cannot send")?;
    buffers.send(&stream, request.up).context("cannot send")?;
    buffers.receive(&stream, request.down).context("a stream failed")?;
    let more = stream.read(&mut [0]).context("a stream did not end well")?;
    ensure!(more == 0, "a stream brought more than the {} bytes that were sent", request.down);
    Ok(())
}

/// Returns the time for `count` connections, each with a small request and a small answer.
pub(crate) fn connections(to: SocketAddrV4, count: u64) -> anyhow::Result<Duration> {
    let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| share(to, count, &begun, &done))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a client returns its errors"))
    })?;
    let (elapsed, done) = (start.elapsed(), done.into_inner());
    ensure!(done == count, "{done} of {count} connections were answered");
    Ok(elapsed)
}

/// Runs one thread's share of the connections. A new connection replaces each finished one.
fn share(to: SocketAddrV4, count: u64, begun: &AtomicU64, done: &AtomicU64) -> anyhow::Result<()> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let begin = |slot: usize| {
        let more = begun.fetch_add(1, Ordering::Relaxed) < count;
        more.then(|| ShortConnection::begin(to, &epoll, slot)).transpose()
    };
    let mut slots = (0..AT_ONCE / THREADS).map(begin).collect::<anyhow::Result<Vec<_>>>()?;
    let mut events = [EpollEvent::empty(); AT_ONCE];
    let timeout = EpollTimeout::try_from(SOCKET_TIMEOUT)?;
    while slots.iter().any(Option::is_some) {
        let ready = match epoll.wait(&mut events, timeout) {
            Ok(0) => bail!("no connection has moved for {} s", SOCKET_TIMEOUT.as_secs()),
            Ok(ready) => ready,
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        for event in &events[..ready] {
            let slot = event.data() as usize;
            let Some(short) = &mut slots[slot] else { continue };
            if short.advance(&epoll, slot).context("a short connection failed")? {
                done.fetch_add(1, Ordering::Relaxed);
                slots[slot] = begin(slot)?;
            }
        }
    }
    Ok(())
}

struct ShortConnection {
    stream: TcpStream,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Connecting,
    /// The number of bytes of the answer that have arrived.
    Requested(u64),
}

impl ShortConnection {
    fn begin(to: SocketAddrV4, epoll: &Epoll, slot: usize) -> anyhow::Result<Self> {
        // TcpStream::connect would block in connect(2).
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
        match connect(socket.as_raw_fd(), &SockaddrIn::from(to)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(errno) => return Err(errno).context("cannot connect"),
        }
        epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLOUT, slot as u64))?;
        Ok(Self { stream: TcpStream::from(socket), state: State::Connecting })
    }

    /// Continues the connection. Returns true when the answer is complete and the connection has ended.
    fn advance(&mut self, epoll: &Epoll, slot: usize) -> anyhow::Result<bool> {
        let State::Requested(mut received) = self.state else {
            if let Some(error) = self.stream.take_error()? {
                return Err(error).context("cannot connect");
            }
            // The send buffer is empty and has space for the request.
            self.stream.write_all(&Request { up: 0, down: ANSWER }.to_bytes())?;
            epoll.modify(&self.stream, &mut EpollEvent::new(EpollFlags::EPOLLIN, slot as u64))?;
            self.state = State::Requested(0);
            return Ok(false);
        };
        let mut buffer = [0; 2 * ANSWER as usize];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    ensure!(received == ANSWER, "it ended after {received} of {ANSWER} bytes");
                    return Ok(true);
                }
                Ok(size) => {
                    ensure!(may_be_data_at(&buffer[..size], received), "it brought bytes that were not sent");
                    received += size as u64;
                    self.state = State::Requested(received);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context(format!("it had {received} of {ANSWER} bytes")),
            }
        }
    }
}
