//! The kernel's own sender over veth from one namespace to another, at full speed or paced to 1
//! Gbit/s. The rate of a paced sender is fixed; the result is its CPU cost, including the receiver's.

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;

use airlink::netns::Namespace;
use airlink::reactor::Clock;
use anyhow::{Context, ensure};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, setsockopt, socket, sockopt};

use crate::addresses::{KERNEL, OURS, PORT};
use crate::meter::{Meter, Sample, Timing};
use crate::test_bed::{Offload, Receiver};

/// 1 Gbit/s of payload, in bytes per second.
pub(crate) const GIGABIT: u64 = 1_000_000_000 / 8;
const CHUNK: usize = 64 << 10;

/// Runs CUBIC, limited to `rate` bytes per second if a rate is given.
pub(crate) fn run(
    clock: Clock,
    timing: Timing,
    rate: Option<u64>,
    offload: Offload,
) -> anyhow::Result<Sample> {
    let (here, there) = connected_namespaces()?;
    ip(&here, &format!("address add {OURS}/24 dev wire"))?;
    if offload == Offload::Off {
        ip(&here, "link set wire gso_max_segs 1")?;
    }
    let receiver = Receiver::start(&there)?;
    let mut stream = here.enter(|| stream(rate))??;
    let mut meter = Meter::start(clock, timing);
    let chunk = vec![0x5a; CHUNK];
    while meter.tick(|| receiver.count()) {
        match stream.write(&chunk) {
            Ok(_) => {}
            // The write times out, so that the meter is queried regularly.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error).context("writing to the kernel's socket"),
        }
    }
    meter.sample().context("the run is over")
}

/// Connects a sender's and a receiver's namespace by veth devices named `wire`, and gives the
/// receiver's device its address.
pub(crate) fn connected_namespaces() -> anyhow::Result<(Namespace, Namespace)> {
    let (here, there) = (Namespace::create()?, Namespace::create()?);
    ip(&here, &format!("link add wire type veth peer name wire netns {}", there.name()))?;
    ip(&there, &format!("address add {KERNEL}/24 dev wire"))?;
    for namespace in [&here, &there] {
        ip(namespace, "link set wire up")?;
    }
    Ok((here, there))
}

fn ip(namespace: &Namespace, words: &str) -> anyhow::Result<()> {
    let status = namespace.spawn(Command::new("ip").args(words.split(' ')))?.wait()?;
    ensure!(status.success(), "`ip {words}` failed");
    Ok(())
}

fn stream(rate: Option<u64>) -> anyhow::Result<TcpStream> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::TcpCongestion, &"cubic".into())?;
    if let Some(rate) = rate {
        limit_rate(&socket, rate).context("cannot set SO_MAX_PACING_RATE")?;
    }
    connect(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(KERNEL, PORT)))?;
    let stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(std::time::Duration::from_millis(10)))?;
    Ok(stream)
}

/// Sets SO_MAX_PACING_RATE, which limits the pacing rate of the kernel's TCP.
#[expect(unsafe_code, reason = "nix does not know this option")]
fn limit_rate(socket: &impl AsFd, bytes_per_s: u64) -> io::Result<()> {
    let value = bytes_per_s.to_ne_bytes();
    let (fd, len) = (socket.as_fd().as_raw_fd(), value.len() as nix::libc::socklen_t);
    // SAFETY: the kernel reads `len` bytes at the pointer, and `value` has this length.
    let status = unsafe {
        nix::libc::setsockopt(
            fd,
            nix::libc::SOL_SOCKET,
            nix::libc::SO_MAX_PACING_RATE,
            value.as_ptr().cast(),
            len,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
