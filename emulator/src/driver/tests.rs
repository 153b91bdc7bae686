//! Tests of the driver, with devices in their own namespaces.

use std::collections::VecDeque;
use std::net::UdpSocket;

use airwire::time::Duration;

use super::*;
use crate::netns::{Namespace, test_namespace};
use crate::reactor::Clock;
use crate::tun::{Tun, TunConfig};

/// Forwards packets from each port to the other one after a delay.
struct Delay(Duration, VecDeque<(Instant, Port, Vec<u8>)>);

impl Machine for Delay {
    fn handle_packet(&mut self, now: Instant, Port(from): Port, packet: Vec<u8>) {
        self.1.push_back((now + self.0, Port(1 - from), packet));
    }
    fn handle_deadline(&mut self, _: Instant) {}
    fn poll_packet(&mut self, now: Instant) -> Option<(Port, Vec<u8>)> {
        self.1.pop_front_if(|(at, ..)| *at <= now).map(|(_, port, packet)| (port, packet))
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.1.front().map(|(at, ..)| *at)
    }
}

/// Checks that all packets that left the machine were written before an observer runs or the driver waits.
struct AllPacketsWritten;

impl Observer<Delay> for AllPacketsWritten {
    fn after(&mut self, round: Round<'_, Delay>) -> Result<ControlFlow<()>, DriverError> {
        let sum = |of: fn(Traffic) -> u64| round.endpoints.iter().map(|one| of(one.traffic())).sum::<u64>();
        let written = sum(|traffic| traffic.received_packets + traffic.refused_packets);
        assert_eq!(sum(|traffic| traffic.sent_packets), written + round.machine.1.len() as u64);
        Ok(ControlFlow::Continue(()))
    }
}

#[test]
fn packets_leave_in_order_and_not_before_deadline() {
    let delay = Duration::from_millis(20);
    assert_packets_leave_in_order(false, delay);
    assert_packets_leave_in_order(true, delay);
    // This deadline expires while the thread is awake.
    assert_packets_leave_in_order(true, Duration::from_micros(1));
}

fn endpoints(namespaces: &[Namespace; 2], offload: bool) -> Vec<Endpoint> {
    let addrs = ["10.0.0.1/24", "10.0.0.2/24"];
    std::iter::zip(namespaces, addrs)
        .map(|(namespace, addr)| {
            let namespace = Some(namespace.path().to_path_buf());
            let addrs = vec![addr.parse().unwrap()];
            let config = TunConfig { namespace, addrs, offload, ..TunConfig::default() };
            Endpoint::new(Tun::open(&config).unwrap(), None)
        })
        .collect()
}

fn assert_packets_leave_in_order(offload: bool, delay: Duration) {
    const PACKETS: usize = 5;
    let namespaces: [_; 2] = std::array::from_fn(|_| test_namespace());
    let mut endpoints = endpoints(&namespaces, offload);
    let [from, to] = ["10.0.0.1:7", "10.0.0.2:7"];
    let sender = namespaces[0].enter(|| UdpSocket::bind(from).unwrap()).unwrap();
    let receiver = namespaces[1].enter(|| UdpSocket::bind(to).unwrap()).unwrap();
    // Fail instead of waiting forever if a packet does not arrive.
    receiver.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();

    let clock = Clock::start();
    let mut reactor = Reactor::new(clock).unwrap();
    let mut machine = Delay(delay, VecDeque::new());
    let arrivals = std::thread::scope(|scope| {
        let arrivals = scope.spawn(|| {
            let mut byte = [0];
            let arrival = |_| receiver.recv(&mut byte).map(|_| (byte[0], clock.now())).unwrap();
            (0..PACKETS).map(arrival).collect::<Vec<_>>()
        });
        let sent = clock.now();
        for byte in 0..PACKETS as u8 {
            sender.send_to(&[byte], to).unwrap();
        }
        // On a busy machine, this thread may not run for a whole second.
        let until = sent + Duration::from_secs(2);
        let lateness =
            run(&mut machine, &mut endpoints, &mut reactor, Some(until), &mut AllPacketsWritten).unwrap();
        assert_eq!(lateness.packets(), PACKETS as u64);
        assert!(clock.now() >= until);
        let arrivals = arrivals.join().unwrap();
        assert!(arrivals.iter().all(|(_, at)| *at >= sent + delay), "sent at {sent}: {arrivals:?}");
        arrivals
    });
    assert!(arrivals.iter().map(|(byte, _)| *byte).eq(0..PACKETS as u8), "{arrivals:?}");
    assert_eq!(endpoints[0].traffic().sent_packets, PACKETS as u64);
    assert_eq!(endpoints[1].traffic().received_packets, PACKETS as u64);
}

/// Sets a new deadline every 5 µs, so that a deadline has always just passed.
struct Ticking(Instant);

impl Machine for Ticking {
    fn handle_packet(&mut self, _: Instant, _: Port, _: Vec<u8>) {}
    fn handle_deadline(&mut self, now: Instant) {
        self.0 = now + Duration::from_micros(5);
    }
    fn poll_packet(&mut self, _: Instant) -> Option<(Port, Vec<u8>)> {
        None
    }
    fn next_deadline(&self) -> Option<Instant> {
        Some(self.0)
    }
}

#[test]
fn observer_sees_no_overdue_deadline() {
    struct NoOverdueDeadline(u32);
    impl Observer<Ticking> for NoOverdueDeadline {
        fn after(&mut self, round: Round<'_, Ticking>) -> Result<ControlFlow<()>, DriverError> {
            let pending = round.machine.next_deadline().unwrap();
            assert!(pending > round.now, "deadline {pending} is overdue at {}", round.now);
            self.0 += 1;
            Ok(if self.0 < 1000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        }
    }
    let mut reactor = Reactor::new(Clock::start()).unwrap();
    run(&mut Ticking(Instant::ZERO), &mut [], &mut reactor, None, &mut NoOverdueDeadline(0)).unwrap();
}

#[test]
fn send_error_of_observer_packet_ends_run() {
    assert_send_error_ends_run(false);
    assert_send_error_ends_run(true);
}

fn assert_send_error_ends_run(offload: bool) {
    /// Removes the device, waits until the run's time is over, and sends a packet. No later round can report
    /// the failure.
    struct RemoveDevice(Namespace, String, Instant);
    impl Observer<Delay> for RemoveDevice {
        fn after(&mut self, round: Round<'_, Delay>) -> Result<ControlFlow<()>, DriverError> {
            let mut ip = std::process::Command::new("ip");
            self.0.spawn(ip.args(["link", "del", &self.1])).unwrap().wait().unwrap();
            while round.reactor.clock().now() < self.2 {}
            round.machine.handle_packet(round.now, Port(1), vec![0x45; 20]);
            Ok(ControlFlow::Continue(()))
        }
        fn next_deadline(&self) -> Option<Instant> {
            Some(Instant::ZERO)
        }
    }
    let namespace = test_namespace();
    let config =
        TunConfig { namespace: Some(namespace.path().to_path_buf()), offload, ..TunConfig::default() };
    let mut endpoints = [Endpoint::new(Tun::open(&config).unwrap(), None)];
    let mut reactor = Reactor::new(Clock::start()).unwrap();
    let until = reactor.clock().now() + Duration::from_millis(200);
    let mut observer = RemoveDevice(namespace, endpoints[0].name().to_owned(), until);
    let mut machine = Delay(Duration::ZERO, VecDeque::new());
    let result = run(&mut machine, &mut endpoints, &mut reactor, Some(until), &mut observer);
    assert!(matches!(result, Err(DriverError::Device { .. })), "{result:?}");
}
