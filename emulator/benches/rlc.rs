//! Cost of the RLC bearer.
//!
//! `cargo bench -p airlink --bench rlc` measures the processor time of a saturated bearer in virtual time, the throughput over
//! Timer_Status_Prohibit, and the lateness of 50 bearers of 384 kbit/s in real time on one core. `-- virtual [SECONDS]` runs
//! only the first measurement. `-- once BLER [SECONDS]` runs one bearer and prints the number of its PDUs, for a profiler that
//! counts instructions.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::Instant as Clock;

use airlink::machine::{Machine, catch_up, drain};
use airlink::path::{FIXED, MOBILE, NamedStage, Path};
use airlink::rlc::bearer::Bearer;
use airlink::rlc::config::{BlockErrors, RlcConfig};
use airlink::rlc::umts::config::Discard;
use airlink::scenario::Scenario;
use airlink::stage::Recording;
use airwire::time::{Duration, Instant};
use airwire::units::Probability;
use nix::time::{ClockId, clock_gettime};

fn config(bler: f64) -> RlcConfig {
    let mut config = RlcConfig::wcdma_384();
    for direction in [&mut config.down, &mut config.up] {
        direction.sender.window = 1024;
        direction.receiver.window = 1024;
        direction.sender.discard = Discard::ResetAfterMaxDat { max_dat: 40 };
        direction.channel.errors = BlockErrors::Independent { bler: Probability::new(bler) };
    }
    config
}

fn path(config: &RlcConfig, seed: u64) -> Path {
    let stage = Bearer::new(config, seed, "radio").expect("the settings are valid");
    let radio = NamedStage { name: "radio".to_owned(), stage: Box::new(stage) };
    Path::new(vec![radio], Recording::Off, false)
}

/// 1500-byte packets in the downlink at 400 kbit/s, and a 40-byte packet in the uplink for every second one.
struct Load {
    path: Path,
    next: Instant,
    sent: u64,
    delivered: u64,
}

impl Load {
    const GAP: Duration = Duration::from_millis(30);

    fn new(config: &RlcConfig, seed: u64) -> Self {
        Self::over(path(config, seed))
    }

    fn over(path: Path) -> Self {
        Self { path, next: Instant::ZERO, sent: 0, delivered: 0 }
    }

    fn next_deadline(&self) -> Instant {
        self.path.next_deadline().map_or(self.next, |deadline| deadline.min(self.next))
    }

    fn until(&mut self, now: Instant) {
        while self.next <= now {
            let Self { path, next, delivered, .. } = self;
            catch_up(path, *next, |_, _, _| *delivered += 1);
            path.handle_packet(*next, FIXED, vec![0x45; 1500]);
            if self.sent % 2 == 1 {
                path.handle_packet(*next, MOBILE, vec![0x45; 40]);
            }
            drain(path, *next, |_, _, _| *delivered += 1);
            self.next += Self::GAP;
            self.sent += 1;
        }
        let Self { path, delivered, .. } = self;
        catch_up(path, now, |_, _, _| *delivered += 1);
    }
}

/// Processor time of this thread, which other programs disturb less than elapsed time.
fn processor_time() -> std::time::Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("the clock exists on every Linux").into()
}

/// Processor time that `seconds` of a load take.
fn time(load: &mut Load, seconds: u64) -> f64 {
    let start = processor_time();
    load.until(Instant::from_secs(seconds));
    (processor_time() - start).as_secs_f64()
}

/// A link with the rate of the bearer.
fn link() -> Path {
    let text = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"384kbit\", delay = \"50ms\" }\n";
    let scenario = Scenario::parse(text, "link").expect("the scenario is valid");
    scenario.build(Some(1), Recording::Off, false).expect("the scenario is valid")
}

/// PDUs that the bearer of a load carried in both directions.
fn pdus(load: &Load) -> u64 {
    let stats = load.path.stats();
    let count = |pointer: &str| stats.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap_or(0);
    count("/radio/down/blocks") + count("/radio/up/blocks")
}

fn once(bler: f64, seconds: u64) {
    let mut load = Load::new(&config(bler), 1);
    load.until(Instant::from_secs(seconds));
    println!("{} PDUs, {} packets delivered", pdus(&load), load.delivered);
}

fn virtual_time(seconds: u64) {
    println!("one bearer, both directions, in virtual time, compared with the same packets over a link");
    for bler in [0.0, 0.01, 0.1] {
        let plain = time(&mut Load::over(link()), seconds);
        let mut load = Load::new(&config(bler), 1);
        let took = time(&mut load, seconds);
        let pdus = pdus(&load);
        println!(
            "  BLER {:>4.1} %: {:3.0} x the link's time, {:6.0} x real time, {:4.0} ns per PDU, {pdus} PDUs, \
             {} packets delivered",
            bler * 100.0,
            took / plain,
            seconds as f64 / took,
            took * 1e9 / pdus as f64,
            load.delivered,
        );
    }
}

/// Inamura, Miyake, Okada, Fig. 2, without TCP.
fn over_timer_status_prohibit() {
    const SECONDS: u64 = 120;
    println!("goodput over Timer_Status_Prohibit, BLER 10 %, window 512 and 1024");
    for tsp in [10, 20, 40, 60, 80, 100, 120, 150, 200, 300, 500, 800] {
        let goodput = |window| {
            let mut config = config(0.1);
            config.down.sender.window = window;
            config.down.receiver.window = window;
            config.down.receiver.timer_status_prohibit = Some(Duration::from_millis(tsp));
            let mut load = Load::new(&config, 1);
            load.until(Instant::from_secs(SECONDS));
            load.path.totals().down.left_bytes as f64 * 8.0 / 1e3 / SECONDS as f64
        };
        println!("  {tsp:3} ms: {:5.1} {:5.1} kbit/s", goodput(512), goodput(1024));
    }
}

/// The TTIs of the bearers have different phases, as if the bearers belonged to unrelated users.
fn real_time() {
    const BEARERS: u64 = 50;
    const SECONDS: u64 = 5;
    let mut bearers: Vec<_> = (0..BEARERS)
        .map(|n| {
            let mut config = config(0.1);
            config.down.channel.phase = Duration::from_micros(n * 200);
            config.up.channel.phase = Duration::from_micros(n * 400);
            Load::new(&config, n)
        })
        .collect();
    let mut lateness = Vec::new();
    let mut busy = 0.0;
    let start = Clock::now();
    let now = || Instant::from_nanos(start.elapsed().as_nanos() as u64);
    loop {
        let next = bearers.iter().map(Load::next_deadline).min().expect("there are bearers");
        if next > Instant::from_secs(SECONDS) {
            break;
        }
        if let Some(wait) = Some(next - now()).filter(|wait| !wait.is_zero()) {
            std::thread::sleep(std::time::Duration::from_nanos(wait.as_nanos()));
        }
        let woke = now();
        for bearer in &mut bearers {
            let deadline = bearer.next_deadline();
            if deadline <= woke {
                // The lateness when this bearer is done, including the time of the earlier bearers.
                bearer.until(woke);
                lateness.push((now() - deadline).as_micros());
            }
        }
        busy += (now() - woke).as_secs_f64();
    }
    lateness.sort_unstable();
    let at = |share: f64| lateness[(lateness.len() as f64 * share) as usize];
    println!("{BEARERS} bearers of 384 kbit/s in real time, on one thread, for {SECONDS} s");
    println!(
        "  {} deadlines, late by p50 {} us, p99 {} us, worst {} us; {:.1} % of one core",
        lateness.len(),
        at(0.5),
        at(0.99),
        lateness[lateness.len() - 1],
        busy / SECONDS as f64 * 100.0
    );
    println!("  {} packets delivered", bearers.iter().map(|bearer| bearer.delivered).sum::<u64>());
}

fn main() {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse().ok());
    let seconds = |index| number(index).map_or(1000, |seconds: f64| seconds as u64);
    match words.first().map(String::as_str) {
        Some("virtual") => virtual_time(seconds(1)),
        Some("once") => once(number(1).unwrap_or(0.0), seconds(2)),
        _ => {
            virtual_time(seconds(1));
            over_timer_status_prohibit();
            real_time();
        }
    }
}
