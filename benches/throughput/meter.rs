//! The amount of data that one run transferred, and its cost.

use airlink::reactor::Clock;
use airwire::time::{Duration, Instant};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Duration of a run. The warm-up (handshake, slow start) is not measured.
#[derive(Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) warm_up: Duration,
    pub(crate) measure: Duration,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sample {
    /// Throughput of TCP payload.
    pub(crate) gbit_per_s: f64,
    pub(crate) packets_per_s: f64,
    /// CPU time of the sender, including the kernel's part. With a receiver thread: of all other
    /// threads. Without one: of the measured thread.
    pub(crate) cpu_ns_per_packet: f64,
    /// Average number of busy cores of the machine, including the kernel and other processes.
    pub(crate) busy_cores: f64,
    /// Packets that the program retransmitted, if it reports them.
    pub(crate) retransmissions: Option<u64>,
}

impl Sample {
    pub(crate) fn cores_per_gbit(&self) -> f64 {
        self.busy_cores / self.gbit_per_s
    }
}

/// Amounts transferred since the start.
#[derive(Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) packets: u64,
    pub(crate) payload: u64,
    pub(crate) retransmissions: Option<u64>,
    /// CPU time of the receiver's thread, if there is one.
    pub(crate) receiver: Option<Duration>,
}

impl Count {
    /// Returns the sender's CPU time since the start.
    fn cpu(&self) -> Duration {
        self.receiver.map_or_else(thread_cpu, |receiver| process_cpu().saturating_sub(receiver))
    }
}

#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    cpu: Duration,
    idle: Duration,
    count: Count,
}

impl Reading {
    fn take(at: Instant, count: Count) -> Self {
        Self { at, cpu: count.cpu(), idle: machine_idle(), count }
    }
}

pub(crate) struct Meter {
    clock: Clock,
    from: Instant,
    until: Instant,
    first: Option<Reading>,
    last: Option<Reading>,
}

impl Meter {
    /// Starts the measurement. Call it in the thread whose CPU time is measured.
    pub(crate) fn start(clock: Clock, timing: Timing) -> Self {
        let from = clock.now() + timing.warm_up;
        Self { clock, from, until: from + timing.measure, first: None, last: None }
    }

    /// Takes the readings when they are due. Returns false when the time is up. Call it at least
    /// every few milliseconds.
    pub(crate) fn tick(&mut self, count: impl FnOnce() -> Count) -> bool {
        let at = self.clock.now();
        if self.first.is_none() && at >= self.from {
            self.first = Some(Reading::take(at, count()));
        } else if at >= self.until {
            self.last = Some(Reading::take(at, count()));
        }
        self.last.is_none()
    }

    /// Returns the time of the next reading.
    pub(crate) fn deadline(&self) -> Instant {
        if self.first.is_none() { self.from } else { self.until }
    }

    /// Returns the result, or `None` before the time is up.
    pub(crate) fn sample(&self) -> Option<Sample> {
        let (first, last) = (self.first?, self.last?);
        let seconds = (last.at - first.at).as_secs_f64();
        let packets = last.count.packets - first.count.packets;
        let payload = last.count.payload - first.count.payload;
        Some(Sample {
            gbit_per_s: payload as f64 * 8.0 / 1e9 / seconds,
            packets_per_s: packets as f64 / seconds,
            cpu_ns_per_packet: (last.cpu - first.cpu).as_nanos() as f64 / packets.max(1) as f64,
            busy_cores: cores() - last.idle.saturating_sub(first.idle).as_secs_f64() / seconds,
            retransmissions: last
                .count
                .retransmissions
                .zip(first.count.retransmissions)
                .map(|(last, first)| last - first),
        })
    }
}

pub(crate) fn thread_cpu() -> Duration {
    cpu(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn process_cpu() -> Duration {
    cpu(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn cpu(clock: ClockId) -> Duration {
    // Both clocks exist on every Linux.
    let cpu = clock_gettime(clock).expect("the CPU clock can be read");
    Duration::from_secs(cpu.tv_sec() as u64) + Duration::from_nanos(cpu.tv_nsec() as u64)
}

/// Returns the time in which cores were idle or used by other virtual machines, summed over all
/// cores (/proc/stat, in units of 10 ms). The kernel measures idle time, but only samples busy time
/// at its clock ticks.
fn machine_idle() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").expect("/proc/stat can be read");
    let all = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<u64> = all.map_while(|field| field.parse().ok()).collect();
    // proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal.
    let idle = [3, 4, 7].map(|field| ticks.get(field).copied().unwrap_or_default());
    Duration::from_millis(10 * idle.iter().sum::<u64>())
}

/// Returns the number of cores that `machine_idle` sums up, regardless of this process's CPU affinity.
fn cores() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("/proc/stat can be read");
    stat.lines().skip(1).take_while(|line| line.starts_with("cpu")).count() as f64
}
