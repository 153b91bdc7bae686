//! A path between two namespaces, emulated by a thread of the test.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use airlink::capture::Capture;
use airlink::driver::{self, DriverError, Endpoint, Observer, Round};
use airlink::netns::Namespace;
use airlink::path::Path;
use airlink::reactor::{Clock, Reactor};
use airlink::scenario::Scenario;
use airlink::stage::Recording;
use airlink::tun::{Tun, TunConfig};
use airwire::time::{Duration, Instant};

use super::namespace;

/// Two namespaces and their path, which exist until this value is dropped. The fixed side forwards packets
/// between its devices, so that airtcp can run there.
pub struct EmulatedPath {
    /// The fixed side: 10.84.0.1.
    pub fixed: Namespace,
    /// The mobile side: 10.84.0.2, with a route to 10.83.0.0/24.
    pub mobile: Namespace,
    stop: Arc<AtomicBool>,
    emulator: Option<JoinHandle<()>>,
}

struct UntilStopped {
    stop: Arc<AtomicBool>,
    next_check: Instant,
}

impl Observer<Path> for UntilStopped {
    fn after(&mut self, round: Round<'_, Path>) -> Result<ControlFlow<()>, DriverError> {
        self.next_check = round.now + Duration::from_millis(50);
        Ok(if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.next_check)
    }
}

fn capture(file: &str) -> Capture {
    Capture::create(file, SystemTime::now()).unwrap()
}

impl EmulatedPath {
    /// Emulates a scenario, given as the text of a scenario file.
    pub fn new(scenario: &str, seed: u64) -> Self {
        Self::with(scenario, seed, [None, None])
    }

    /// Emulates a scenario with a capture at the fixed side's end of the path. The pcap file is complete when
    /// this is dropped.
    pub fn captured(scenario: &str, seed: u64, file: &str) -> Self {
        Self::with(scenario, seed, [Some(capture(file)), None])
    }

    /// Emulates a scenario with captures at the fixed and the mobile side's end of the path.
    pub fn captured_at_both_ends(scenario: &str, seed: u64, files: [&str; 2]) -> Self {
        Self::with(scenario, seed, files.map(|file| Some(capture(file))))
    }

    fn with(scenario: &str, seed: u64, captures: [Option<Capture>; 2]) -> Self {
        let (fixed, mobile) = (namespace(), namespace());
        fixed.sysctl("net.ipv4.ip_forward", "1").unwrap();
        let device = |namespace: &Namespace, addr: &str, routes: &[&str]| {
            Tun::open(&TunConfig {
                namespace: Some(namespace.name().into()),
                addrs: vec![addr.parse().unwrap()],
                routes: routes.iter().map(|route| route.parse().unwrap()).collect(),
                ..TunConfig::default()
            })
            .unwrap()
        };
        let tuns = [device(&fixed, "10.84.0.1/24", &[]), device(&mobile, "10.84.0.2/24", &["10.83.0.0/24"])];
        let scenario = Scenario::parse(scenario, "test").unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let mut observer = UntilStopped { stop: Arc::clone(&stop), next_check: Instant::ZERO };
        let emulator = thread::spawn(move || {
            let mut path = scenario.build(Some(seed), Recording::Off, false).unwrap();
            let mut reactor = Reactor::new(Clock::start()).unwrap();
            let ([fixed, mobile], [at_fixed, at_mobile]) = (tuns, captures);
            let mut endpoints = [Endpoint::new(fixed, at_fixed), Endpoint::new(mobile, at_mobile)];
            driver::run(&mut path, &mut endpoints, &mut reactor, None, &mut observer).unwrap();
        });
        Self { fixed, mobile, stop, emulator: Some(emulator) }
    }
}

impl Drop for EmulatedPath {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(emulator) = self.emulator.take() {
            let ended = emulator.join();
            assert!(ended.is_ok() || thread::panicking(), "the emulator has failed");
        }
    }
}
