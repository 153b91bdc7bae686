//! Fetches a page from this machine's kernel with a userspace host: `cargo run -p airtcp-tun --example fetch`, as
//! root.
//!
//! The kernel's end of the TUN device and the server are in a network namespace, which is removed at the end.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::thread;

use airlink::netns::Namespace;
use airlink::reactor::{Clock, Reactor};
use airlink::tun::{Tun, TunConfig};
use airtcp::host::{ConnId, Host, HostConfig, IoError};
use airtcp::profile::Profile;
use airtcp::tcp::SocketOptions;
use airtcp_tun::{Application, Driver};
use airwire::time::Instant;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 2);
const PORT: u16 = 80;
const MTU: u16 = 1500;

/// An application that reads until the server closes the connection.
struct Fetch {
    id: ConnId,
    answer: Vec<u8>,
    failed: Option<IoError>,
}

impl Application for Fetch {
    fn run(&mut self, _: Instant, host: &mut Host) -> ControlFlow<()> {
        let mut buffer = [0; 4096];
        loop {
            match host.read(self.id, &mut buffer) {
                Ok(0) => return ControlFlow::Break(()),
                Ok(len) => self.answer.extend(&buffer[..len]),
                // The driver calls again after the next packet.
                Err(IoError::WouldBlock) => return ControlFlow::Continue(()),
                Err(error) => {
                    self.failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
        }
    }
}

fn fetch() -> Result<(), Box<dyn Error>> {
    let namespace = Namespace::create()?;
    let tun = Tun::open(&TunConfig {
        namespace: Some(namespace.path().to_owned()),
        addrs: vec![format!("{KERNEL}/24").parse()?],
        mtu: MTU,
        ..TunConfig::default()
    })?;
    // A socket stays in the namespace in which it was created.
    let listener = namespace.enter(|| TcpListener::bind((KERNEL, PORT)))??;
    thread::spawn(move || serve(&listener));

    let (profile, recipe) = (Profile::default(), "sack+rack+prr+cubic".parse()?);
    let host = Host::new(HostConfig { addrs: vec![OURS.into()], mtu: MTU.into(), profile, recipe, seed: 1 });
    let clock = Clock::start();
    let mut driver = Driver::new(host, tun, Reactor::new(clock)?, None)?;
    let options = SocketOptions::of(driver.host.profile());
    let id = driver.host.connect(clock.now(), None, (KERNEL, PORT).into(), options)?;
    // The request waits in the send buffer until the handshake is complete.
    driver.host.write(clock.now(), id, b"GET / HTTP/1.0\r\n\r\n")?;
    let mut fetch = Fetch { id, answer: Vec::new(), failed: None };
    driver.run(&mut fetch)?;
    if let Some(error) = fetch.failed {
        return Err(error.into());
    }
    println!("{}", String::from_utf8_lossy(&fetch.answer).trim_end());
    if let Some(srtt) = driver.host.connection(id).and_then(|connection| connection.rtt().srtt()) {
        println!("round-trip time {srtt} (smoothed)");
    }
    driver.host.close(clock.now(), id);
    Ok(driver.finish()?)
}

/// Answers one request over the kernel's TCP.
fn serve(listener: &TcpListener) -> io::Result<()> {
    let (mut stream, peer) = listener.accept()?;
    let request = BufReader::new(stream.try_clone()?).lines().map_while(Result::ok);
    request.take_while(|line| !line.is_empty()).for_each(drop);
    write!(stream, "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nThe kernel greets {peer}.\n")
}

fn main() -> ExitCode {
    if let Err(error) = fetch() {
        eprintln!("fetch: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
