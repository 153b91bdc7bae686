//! The protocol between this program's client and server, and the server.
//!
//! A request contains the number of bytes that follow it, and the number of bytes to send back. The
//! server closes the connection after the answer. The value of each byte depends on its position,
//! so both ends detect wrong, missing and additional bytes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use airlink::netns::Namespace;
use nix::sys::socket::{Shutdown, shutdown};

/// Socket timeout. No measurement stalls for this long.
pub(crate) const SOCKET_TIMEOUT: Duration = Duration::from_secs(20);
pub(crate) const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8000);

/// Number of server threads: more than there are concurrent streams.
const THREADS: usize = 24;
const CHUNK: usize = 256 << 10;
/// A prime, so that successive blocks of a program's buffer have different content.
const PERIOD: usize = 251;

#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) up: u64,
    pub(crate) down: u64,
}

impl Request {
    pub(crate) const LEN: usize = 16;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        (u128::from(self.up) << 64 | u128::from(self.down)).to_be_bytes()
    }

    fn read(bytes: [u8; Self::LEN]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self { up: (both >> 64) as u64, down: both as u64 }
    }
}

/// Returns the value of the byte at this position, in either direction.
fn byte_at(at: u64) -> u8 {
    (at % PERIOD as u64) as u8
}

/// Returns whether `bytes` can be the data at position `at`. Compares only the first and the last
/// byte, because comparing every byte would affect the measurement.
pub(crate) fn may_be_data_at(bytes: &[u8], at: u64) -> bool {
    let ends = [0, bytes.len().saturating_sub(1)];
    ends.iter().all(|end| bytes.get(*end).is_none_or(|found| *found == byte_at(at + *end as u64)))
}

/// The send and receive buffers of one thread.
pub(crate) struct Buffers {
    out: Vec<u8>,
    into: Vec<u8>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self { out: (0..(CHUNK + PERIOD) as u64).map(byte_at).collect(), into: vec![0; CHUNK] }
    }

    pub(crate) fn send(&self, mut stream: &TcpStream, len: u64) -> io::Result<()> {
        let mut at = 0;
        while at < len {
            let begin = (at % PERIOD as u64) as usize;
            let size = (len - at).min(CHUNK as u64);
            stream.write_all(&self.out[begin..begin + size as usize])?;
            at += size;
        }
        Ok(())
    }

    pub(crate) fn receive(&mut self, mut stream: &TcpStream, len: u64) -> io::Result<()> {
        let mut at = 0;
        while at < len {
            let room = (len - at).min(CHUNK as u64) as usize;
            match stream.read(&mut self.into[..room]) {
                Ok(0) => return Err(wrong(format!("ended after {at} of {len} bytes"))),
                Ok(size) if may_be_data_at(&self.into[..size], at) => at += size as u64,
                Ok(_) => return Err(wrong(format!("brought bytes that were not sent, near number {at}"))),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(wrong(format!("ended after {at} of {len} bytes: {error}"))),
            }
        }
        Ok(())
    }
}

fn wrong(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// Threads that each serve one connection at a time. Dropping the server waits for its threads, so
/// the proxies must have ended before.
pub(crate) struct Server {
    listener: Arc<TcpListener>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(namespace: &Namespace) -> anyhow::Result<Self> {
        let listener = Arc::new(namespace.enter(|| TcpListener::bind(SERVER))??);
        let mut server = Self { listener, threads: Vec::new() };
        for _ in 0..THREADS {
            let listener = Arc::clone(&server.listener);
            server.threads.push(thread::Builder::new().name("server".to_owned()).spawn(move || {
                let mut buffers = Buffers::new();
                while let Ok((stream, _)) = listener.accept() {
                    // The client detects the missing data, and knows the program it came through.
                    let _ = answer(&stream, &mut buffers);
                }
            })?);
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Wakes the threads that block in accept(2).
        let _ = shutdown(self.listener.as_raw_fd(), Shutdown::Both);
        for thread in self.threads.drain(..) {
            // A panic has already been reported on stderr.
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: &TcpStream, buffers: &mut Buffers) -> io::Result<()> {
    stream.set_read_timeout(Some(SOCKET_TIMEOUT))?;
    stream.set_write_timeout(Some(SOCKET_TIMEOUT))?;
    let mut request = [0; Request::LEN];
    stream.read_exact(&mut request)?;
    let request = Request::read(request);
    buffers.receive(stream, request.up)?;
    buffers.send(stream, request.down)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misplaced_bytes_are_detected() {
        let buffers = Buffers::new();
        assert!(may_be_data_at(&buffers.out[7..700], 7 + 3 * PERIOD as u64));
        assert!(!may_be_data_at(&buffers.out[7..700], 8));
        assert!(may_be_data_at(&[], 5));
        let request = Request { up: 1 << 40, down: 9 };
        let read = Request::read(request.to_bytes());
        assert_eq!((read.up, read.down), (request.up, request.down));
    }
}
