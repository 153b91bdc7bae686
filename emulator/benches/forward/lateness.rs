//! Lateness of packets at 100,000 packets per second through a delay: on an idle machine and with a busy loop on each core,
//! with and without real-time scheduling.

use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use airlink::lateness::Lateness;
use airlink::reactor::{Clock, Reactor};
use airwire::time::Duration;
use nix::sys::socket::{MsgFlags, send, setsockopt, sockopt};
use nix::unistd::gettid;

use super::{Arguments, Emulated, device, namespaces, reactor, wire};

/// Bytes of data in each packet.
const PAYLOAD: usize = 64;
/// Packets per burst.
const BURST: usize = 5;
/// Time between bursts.
const INTERVAL: Duration = Duration::from_micros(50);
const DELAY: &str = "5ms";
/// The default of `airlink run`.
const SPIN: Duration = Duration::from_micros(100);

#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    busy: bool,
    realtime: bool,
}

const ROWS: [Row; 4] = [
    Row { name: "idle", busy: false, realtime: false },
    Row { name: "idle, real-time", busy: false, realtime: true },
    Row { name: "a busy loop on each core", busy: true, realtime: false },
    Row { name: "a busy loop on each core, real-time", busy: true, realtime: true },
];

pub(super) fn run(arguments: &Arguments) {
    let rows: Vec<Row> = ROWS.into_iter().filter(|row| arguments.is_wanted(row.name)).collect();
    let mut samples = vec![Vec::new(); rows.len()];
    for round in 1..=arguments.rounds {
        for (row, samples) in rows.iter().zip(&mut samples) {
            let sample = row.run(arguments);
            let [p50, p99, max] = [50.0, 99.0, 100.0].map(|percentile| sample.micros(percentile));
            eprintln!(
                "round {round}: {:<36} {:.0} kpackets/s, {} lost before; p50 {p50:.1} µs, p99 {p99:.1} µs, max {max:.0} µs",
                row.name,
                sample.per_second / 1e3,
                sample.lost,
            );
            samples.push(sample);
        }
    }
    println!(
        "{:<36} {:>10} {:>24} {:>24} {:>12}",
        "lateness, µs", "kpackets/s", "p50 (min to max)", "p99 (min to max)", "max"
    );
    for (row, samples) in rows.iter().zip(samples) {
        let of = |value: &dyn Fn(&Sample) -> f64| super::spread(samples.iter().map(value).collect());
        let shown = |[min, median, max]: [f64; 3]| format!("{median:.1} ({min:.1} to {max:.1})");
        println!(
            "{:<36} {:>10.0} {:>24} {:>24} {:>12.0}",
            row.name,
            of(&|sample| sample.per_second / 1e3)[1],
            shown(of(&|sample| sample.micros(50.0))),
            shown(of(&|sample| sample.micros(99.0))),
            of(&|sample| sample.micros(100.0))[2],
        );
    }
}

#[derive(Clone)]
struct Sample {
    per_second: f64,
    /// Packets that the kernel dropped because the device's queue was full.
    lost: u64,
    lateness: Lateness,
}

impl Sample {
    fn micros(&self, percentile: f64) -> f64 {
        self.lateness.at(percentile).map_or(f64::NAN, |late| late.as_nanos() as f64 / 1e3)
    }
}

impl Row {
    fn run(self, arguments: &Arguments) -> Sample {
        let namespaces = namespaces();
        let devices = [
            device(&namespaces[0], "10.9.0.1/24", &["10.99.0.0/16"], false),
            device(&namespaces[1], "10.9.0.2/24", &[], false),
        ];
        let sender = namespaces[0].enter(sender).expect("the namespace is there").expect("a UDP socket");
        let stop = AtomicBool::new(false);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            scope.spawn(|| pace(&sender, &stop));
            for _ in 0..if self.busy { cores } else { 0 } {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::black_box(0);
                    }
                });
            }
            schedule(self.realtime);
            let mut reactor = reactor();
            reactor.set_spin(SPIN);
            let until = reactor.clock().now() + arguments.duration;
            let (lateness, [from, _]) = Emulated::Scenario(wire(DELAY)).drive(devices, &mut reactor, until);
            schedule(false);
            stop.store(true, Ordering::Relaxed);
            let per_second = lateness.packets() as f64 / arguments.duration.as_secs_f64();
            Sample { per_second, lost: from.kernel_drops().unwrap_or_default(), lateness }
        })
    }
}

/// Sets the scheduling policy of this thread, as `airlink run --realtime` does.
fn schedule(realtime: bool) {
    let thread = gettid().to_string();
    let policy = if realtime { ["-R", "-f", "-p", "1"] } else { ["-R", "-o", "-p", "0"] };
    let mut chrt = Command::new("chrt");
    let done = chrt.args(policy).arg(&thread).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !done.is_ok_and(|status| status.success()) && realtime {
        eprintln!("no real-time scheduling: run as root and install chrt (util-linux)");
    }
}

fn sender() -> nix::Result<OwnedFd> {
    let socket = UdpSocket::bind("10.9.0.1:0").map_err(|_| nix::errno::Errno::last())?;
    socket.connect("10.99.0.1:9").map_err(|_| nix::errno::Errno::last())?;
    // One call sends a complete burst.
    setsockopt(&socket, sockopt::UdpGsoSegment, &(PAYLOAD as i32))?;
    Ok(socket.into())
}

/// Sends the bursts. This thread always has real-time scheduling, because the benchmark does not measure this
/// thread.
fn pace(socket: &OwnedFd, stop: &AtomicBool) {
    schedule(true);
    let mut reactor = Reactor::new(Clock::start()).expect("epoll");
    let datagrams = [0; PAYLOAD * BURST];
    let mut next = reactor.clock().now();
    while !stop.load(Ordering::Relaxed) {
        // After a delay, the thread catches up, so that the mean rate is kept.
        next += INTERVAL;
        while reactor.clock().now() < next {
            let _ = reactor.wait(Some(next)).expect("epoll");
        }
        let _ = send(socket.as_raw_fd(), &datagrams, MsgFlags::empty());
    }
}
