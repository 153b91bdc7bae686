//! Throughput of one connection of the kernel's TCP between two namespaces: over airlink with and without offload,
//! over a loop that copies between two devices, and over veth with the kernel's own emulator.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use airlink::netns::Namespace;
use airlink::reactor::{Interest, Reactor, Token};
use airlink::tun::Tun;
use airwire::time::Instant;
use nix::errno::Errno;
use nix::time::ClockId;

use super::{Arguments, Emulated, cpu_time, device, namespaces, reactor, table, wire};

const BATCH: usize = 64;
/// Largest packet, including the header that a device with offload adds.
const LARGEST: usize = 65_600;

/// The path between the namespaces.
enum Path {
    /// Two devices, and a loop that copies packets from each to the other.
    BareCopy {
        offload: bool,
    },
    Airlink {
        emulated: Emulated,
        offload: bool,
    },
    /// A pair of veth devices with this queueing discipline at both ends. Empty: none.
    Veth(&'static str),
}

pub(super) fn run(arguments: &Arguments) {
    let airlink = |emulated: &Emulated, offload| Path::Airlink { emulated: emulated.clone(), offload };
    let paths = [Emulated::Nothing, Emulated::Scenario(wire("0ms")), Emulated::Scenario(wire("1ms"))];
    let mut rows = vec![
        ("offload: bare copy", Path::BareCopy { offload: true }),
        ("offload: nothing between", airlink(&paths[0], true)),
        ("offload: queue + wire", airlink(&paths[1], true)),
        ("offload: delay of 1 ms", airlink(&paths[2], true)),
        ("single: bare copy", Path::BareCopy { offload: false }),
        ("single: nothing between", airlink(&paths[0], false)),
        ("single: queue + wire", airlink(&paths[1], false)),
        ("single: delay of 1 ms", airlink(&paths[2], false)),
        ("veth: nothing between", Path::Veth("")),
        ("veth: tbf", Path::Veth("tbf rate 100gbit burst 1mb limit 15mb")),
        ("veth: netem, delay of 1 ms", Path::Veth("netem delay 1ms limit 10000")),
    ];
    rows.retain(|(name, path)| arguments.is_wanted(name) && path.is_supported(name));
    let samples = arguments.compare(&rows, |path| path.run(arguments));
    table("one TCP", [("Gbit/s", 2), ("CPU of a Gbit/s", 2)], &rows, &samples, |sample| {
        [sample.gbit_per_second, sample.cores_per_gbit]
    });
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    gbit_per_second: f64,
    /// Processor time of this process (sender, receiver and forwarder) per second and Gbit/s.
    cores_per_gbit: f64,
}

impl Path {
    /// Whether this kernel supports the path. If not, prints the reason.
    fn is_supported(&self, row: &str) -> bool {
        let Self::Veth(discipline) = self else { return true };
        let namespaces = namespaces();
        let tried = veth(&namespaces, discipline);
        if let Err(error) = &tried {
            println!("{row}: not supported by this kernel ({error})");
        }
        tried.is_ok()
    }

    fn run(&self, arguments: &Arguments) -> Sample {
        let namespaces = namespaces();
        let devices = |offload| {
            ["10.9.0.1/24", "10.9.0.2/24"]
                .iter()
                .zip(&namespaces)
                .map(|(addr, namespace)| device(namespace, addr, &[], offload))
                .collect::<Vec<_>>()
        };
        let devices: Option<[Tun; 2]> = match self {
            Self::BareCopy { offload } | Self::Airlink { offload, .. } => devices(*offload).try_into().ok(),
            Self::Veth(discipline) => {
                veth(&namespaces, discipline).expect("the kernel supports this discipline");
                None
            }
        };
        let listener = namespaces[1].enter(|| TcpListener::bind("10.9.0.2:5000"));
        let listener = listener.expect("the namespace is there").expect("a TCP socket");
        let (received, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let (sent_by, received_by) = (&namespaces[0], &received);
        std::thread::scope(|scope| {
            scope.spawn(|| send(sent_by, &stop));
            scope.spawn(move || receive(&listener, received_by));
            let before = cpu_time(ClockId::CLOCK_PROCESS_CPUTIME_ID);
            let mut reactor = reactor();
            let until = reactor.clock().now() + arguments.duration;
            // The threads exchange data through these until `stop` is set.
            let forwarder = match (self, devices) {
                (Self::BareCopy { .. }, Some(devices)) => {
                    copy(&devices, &mut reactor, until);
                    (Some(devices), None)
                }
                (Self::Airlink { emulated, .. }, Some(devices)) => {
                    (None, Some(emulated.drive(devices, &mut reactor, until).1))
                }
                _ => {
                    while reactor.clock().now() < until {
                        let _ = reactor.wait(Some(until)).expect("epoll");
                    }
                    (None, None)
                }
            };
            let gbit = received.load(Ordering::Relaxed) as f64 * 8e-9;
            let cpu = (cpu_time(ClockId::CLOCK_PROCESS_CPUTIME_ID) - before) * 1e-9;
            stop.store(true, Ordering::Relaxed);
            drop(forwarder);
            // Without a forwarder, both threads end by their time limits.
            Sample { gbit_per_second: gbit / arguments.duration.as_secs_f64(), cores_per_gbit: cpu / gbit }
        })
    }
}

fn send(namespace: &Namespace, stop: &AtomicBool) {
    let stream = namespace.enter(|| TcpStream::connect("10.9.0.2:5000"));
    let Ok(Ok(mut stream)) = stream else { return };
    let _ = stream.set_write_timeout(Some(std::time::Duration::from_millis(300)));
    let data = vec![0; 1 << 17];
    while !stop.load(Ordering::Relaxed) {
        // An expired time limit is not a reason to stop.
        let _ = stream.write(&data);
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn receive(listener: &TcpListener, received: &AtomicU64) {
    let Ok((mut stream, _)) = listener.accept() else { return };
    let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(700)));
    let mut buffer = vec![0; 1 << 17];
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        received.fetch_add(len as u64, Ordering::Relaxed);
    }
}

/// The least possible work in both directions: headers of offload are copied with the packets.
fn copy(devices: &[Tun; 2], reactor: &mut Reactor, until: Instant) {
    let clock = reactor.clock();
    for (device, token) in devices.iter().zip(0..) {
        reactor.register(device, Token(token), Interest::Read).expect("epoll");
    }
    let mut buffer = [0; LARGEST];
    while clock.now() < until {
        let mut idle = true;
        for (from, to) in [(0, 1), (1, 0)] {
            for _ in 0..BATCH {
                let len = match nix::unistd::read(devices[from].as_fd(), &mut buffer) {
                    Err(Errno::EAGAIN) => break,
                    len => len.expect("the device is there"),
                };
                let _ = nix::unistd::write(devices[to].as_fd(), &buffer[..len]).expect("the device is there");
                idle = false;
            }
        }
        if idle {
            let _ = reactor.wait(Some(until)).expect("epoll");
        }
    }
}

/// Creates a pair of veth devices between the namespaces.
fn veth(namespaces: &[Namespace; 2], discipline: &str) -> Result<(), String> {
    let [a, b] = namespaces;
    run_in(a, &format!("ip link add veth0 type veth peer name veth0 netns {}", b.name()))?;
    for (namespace, addr) in [(a, "10.9.0.1/24"), (b, "10.9.0.2/24")] {
        run_in(namespace, &format!("ip address add {addr} dev veth0"))?;
        run_in(namespace, "ip link set veth0 up")?;
        if !discipline.is_empty() {
            run_in(namespace, &format!("tc qdisc add dev veth0 root {discipline}"))?;
        }
    }
    Ok(())
}

fn run_in(namespace: &Namespace, command: &str) -> Result<(), String> {
    let mut words = command.split(' ');
    let mut program = Command::new(words.next().unwrap_or_default());
    program.args(words).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = namespace.spawn(&mut program).map_err(|error| error.to_string())?;
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command}: {}", stderr.lines().next().unwrap_or_default()))
}
