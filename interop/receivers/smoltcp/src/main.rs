//! smoltcp as a receiver. The contract is in interop/receivers/README.md.

use std::env;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::thread;

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Medium, TunTapInterface, wait};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr};

/// Maximum sleep of the stack while stdout is full. It must still handle its timers and the peer's probes.
const MAX_SLEEP_WHILE_FULL: Duration = Duration::from_millis(2);
/// Maximum wait for the ACK of our FIN.
const LINGER: Duration = Duration::from_secs(1);

type Result<T> = std::result::Result<T, String>;

struct Settings {
    addr: Ipv4Addr,
    gateway: Ipv4Addr,
    prefix: u8,
    port: u16,
    rcvbuf: usize,
}

fn setting<T: FromStr<Err: Display>>(name: &str) -> Result<T> {
    let value = env::var(name).map_err(|error| format!("{name}: {error}"))?;
    value.parse().map_err(|error| format!("{name}={value}: {error}"))
}

fn read_settings() -> Result<Settings> {
    Ok(Settings {
        addr: setting("RECEIVER_ADDR")?,
        gateway: setting("RECEIVER_GATEWAY")?,
        prefix: setting("RECEIVER_PREFIX")?,
        port: setting("RECEIVER_PORT")?,
        rcvbuf: if env::var_os("RECEIVER_RCVBUF").is_some() { setting("RECEIVER_RCVBUF")? } else { 65535 },
    })
}

/// Opens a TUN device with the first free name, and configures the kernel's side.
fn open_tun(settings: &Settings) -> Result<TunTapInterface> {
    for number in 0.. {
        let name = format!("stack{number}");
        match TunTapInterface::new(&name, Medium::Ip) {
            Ok(tun) => {
                ip(&["addr", "add", &format!("{}/{}", settings.gateway, settings.prefix), "dev", &name])?;
                ip(&["link", "set", &name, "up"])?;
                return Ok(tun);
            }
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
            Err(error) => {
                return Err(format!(
                    "no TUN device: {error}: run as root in this namespace, with read and write access to /dev/net/tun"
                ));
            }
        }
    }
    unreachable!("the range has no end")
}

fn ip(arguments: &[&str]) -> Result<()> {
    let status = Command::new("ip").args(arguments).status().map_err(|error| format!("ip: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("failed: ip {}", arguments.join(" "))) }
}

/// Writes all chunks to stdout. A full stdout blocks this thread, but not the stack.
fn write_out(chunks: &Receiver<Vec<u8>>) -> Result<()> {
    let mut out = io::stdout().lock();
    for chunk in chunks {
        out.write_all(&chunk).map_err(|error| format!("writing stdout: {error}"))?;
    }
    out.flush().map_err(|error| format!("writing stdout: {error}"))
}

fn run() -> Result<()> {
    let settings = read_settings()?;
    let mut tun = open_tun(&settings)?;

    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = std::process::id().into();
    let mut stack = Interface::new(config, &mut tun, Instant::now());
    stack.update_ip_addrs(|addrs| {
        addrs
            .push(IpCidr::new(settings.addr.into(), settings.prefix))
            .expect("the interface has room for two addresses");
    });
    stack
        .routes_mut()
        .add_default_ipv4_route(settings.gateway)
        .expect("the interface has room for two routes");

    let mut socket = Socket::new(SocketBuffer::new(vec![0; settings.rcvbuf]), SocketBuffer::new(vec![0; 1]));
    socket.set_tsval_generator(Some(|| Instant::now().total_millis() as u32));
    socket.listen(settings.port).map_err(|error| format!("smoltcp cannot listen: {error}"))?;
    let mut sockets = SocketSet::new(vec![]);
    let handle = sockets.add(socket);

    let (chunks, written) = sync_channel(8);
    let mut chunks = Some(chunks);
    let mut writer = Some(thread::spawn(move || write_out(&written)));
    let mut closed_at = None;
    eprintln!("listening on {} port {}", settings.addr, settings.port);
    loop {
        stack.poll(Instant::now(), &mut tun, &mut sockets);
        let socket = sockets.get_mut::<Socket<'_>>(handle);

        let mut full = false;
        while let Some(chunks) = chunks.as_ref().filter(|_| socket.can_recv() && !full) {
            let taken = socket.recv(|bytes| match chunks.try_send(bytes.to_vec()) {
                Ok(()) => (bytes.len(), Ok(())),
                Err(error) => (0, Err(error)),
            });
            match taken.map_err(|error| format!("smoltcp: {error}"))? {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => full = true,
                Err(TrySendError::Disconnected(_)) => break,
            }
        }

        if socket.state() == State::CloseWait && !socket.can_recv() {
            chunks = None;
        }
        if let Some(done) = writer.take_if(|writer| writer.is_finished()) {
            done.join().map_err(|_| "the writer of stdout panicked")??;
            socket.close();
            closed_at = Some(Instant::now());
        }
        match (socket.state(), closed_at) {
            (State::Closed, Some(_)) => return Ok(()),
            (State::Closed, None) => return Err("the peer reset the connection".into()),
            (_, Some(at)) if Instant::now() > at + LINGER => return Ok(()),
            _ => {}
        }

        let mut delay = stack.poll_delay(Instant::now(), &sockets);
        if full || chunks.is_none() {
            delay = Some(delay.map_or(MAX_SLEEP_WHILE_FULL, |delay| delay.min(MAX_SLEEP_WHILE_FULL)));
        }
        match wait(tun.as_raw_fd(), delay) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(format!("waiting: {error}")),
            _ => {}
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("receiver: {error}");
            ExitCode::FAILURE
        }
    }
}
