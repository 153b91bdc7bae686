//! The interface of all protocol machines, and the rules that a driver must follow.
//!
//! A machine is sans-I/O: it receives packets and the time, and returns packets and its next deadline. The
//! same machine runs in real time between TUN devices (`driver`) and in virtual time.

use airwire::time::Instant;

/// A place where packets enter and leave a machine, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub usize);

/// A machine with ports.
///
/// # Order of calls
///
/// 1. Before a packet is handed in, all deadlines up to that instant are handled: [`catch_up`].
/// 2. After every `handle_*`, `poll_packet` is called until it returns `None`: [`drain`]. `next_deadline` is
///    meaningful only after these calls.
/// 3. `now` never decreases. Events at the same instant happen in the order of the calls.
/// 4. A driver that wakes up late passes the missed deadline as `now`, not the current time. So lateness
///    appears only once, at the exit, and does not add up from stage to stage.
pub trait Machine {
    /// An IP packet arrived at `port`.
    fn handle_packet(&mut self, now: Instant, port: Port, packet: Vec<u8>);

    /// The time `now` has reached `next_deadline()`.
    fn handle_deadline(&mut self, now: Instant);

    /// The next packet that leaves at this instant, with its port.
    fn poll_packet(&mut self, now: Instant) -> Option<(Port, Vec<u8>)>;

    /// When `handle_deadline` must be called next. `None`: not before another packet arrives.
    fn next_deadline(&self) -> Option<Instant>;
}

/// Passes all packets that leave at `now` to `deliver`.
pub fn drain(machine: &mut impl Machine, now: Instant, mut deliver: impl FnMut(Instant, Port, Vec<u8>)) {
    while let Some((port, packet)) = machine.poll_packet(now) {
        deliver(now, port, packet);
    }
}

/// Handles all deadlines up to and including `now`, each at its own time, and passes the leaving packets to
/// `deliver`.
///
/// # Panics
///
/// Panics if the machine keeps returning the same deadline. That is a livelock, and a bug in the machine.
pub fn catch_up(machine: &mut impl Machine, now: Instant, mut deliver: impl FnMut(Instant, Port, Vec<u8>)) {
    while advance(machine, now, u32::MAX, &mut deliver).is_some() {}
}

/// Handles deadlines up to and including `until`, and passes the leaving packets to `deliver`. Stops after
/// the instant at which a packet leaves, or after `max_deadlines` deadlines. The deadlines of one instant are
/// always handled together, so their number can slightly exceed `max_deadlines`. Returns the time of the last
/// one, or `None` if no deadline was due.
///
/// # Panics
///
/// See [`catch_up`].
pub fn advance(
    machine: &mut impl Machine,
    until: Instant,
    max_deadlines: u32,
    mut deliver: impl FnMut(Instant, Port, Vec<u8>),
) -> Option<Instant> {
    const LIVELOCK: u32 = 100_000;
    let mut until = until;
    let mut last = None;
    let mut repeats = 0;
    let mut handled = 0;
    while let Some(deadline) = machine.next_deadline().filter(|deadline| *deadline <= until) {
        repeats = if last == Some(deadline) { repeats + 1 } else { 0 };
        assert!(repeats < LIVELOCK, "the machine asks for the deadline {deadline:?} over and over");
        last = Some(deadline);
        machine.handle_deadline(deadline);
        handled += 1;
        while let Some((port, packet)) = machine.poll_packet(deadline) {
            until = deadline;
            deliver(deadline, port, packet);
        }
        if handled == max_deadlines {
            until = deadline;
        }
    }
    last
}

/// The simplest machine: a packet that enters at one port leaves at once at the other.
#[derive(Debug, Default)]
pub struct Crossover {
    crossing: std::collections::VecDeque<(Port, Vec<u8>)>,
}

impl Machine for Crossover {
    fn handle_packet(&mut self, _now: Instant, port: Port, packet: Vec<u8>) {
        let Port(from) = port;
        assert!(from < 2, "a crossover has the ports 0 and 1, not {from}");
        self.crossing.push_back((Port(1 - from), packet));
    }

    fn handle_deadline(&mut self, _now: Instant) {}

    fn poll_packet(&mut self, _now: Instant) -> Option<(Port, Vec<u8>)> {
        self.crossing.pop_front()
    }

    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Port = Port(0);
    const B: Port = Port(1);

    /// Sends a packet through port 0 at every `n`-th of its times.
    struct Beacon {
        times: Vec<Instant>,
        n: u32,
        handled: u32,
        packet: Option<Vec<u8>>,
    }

    fn beacon(millis: &[u64], n: u32) -> Beacon {
        Beacon { times: millis.iter().map(|millis| at(*millis)).collect(), n, handled: 0, packet: None }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    impl Machine for Beacon {
        fn handle_packet(&mut self, _: Instant, _: Port, _: Vec<u8>) {}
        fn handle_deadline(&mut self, now: Instant) {
            assert_eq!(now, self.times.remove(0));
            self.handled += 1;
            self.packet = self.handled.is_multiple_of(self.n).then(|| vec![0]);
        }
        fn poll_packet(&mut self, _: Instant) -> Option<(Port, Vec<u8>)> {
            self.packet.take().map(|packet| (A, packet))
        }
        fn next_deadline(&self) -> Option<Instant> {
            self.times.first().copied()
        }
    }

    /// A machine whose deadline never advances.
    struct Stuck;

    impl Machine for Stuck {
        fn handle_packet(&mut self, _: Instant, _: Port, _: Vec<u8>) {}
        fn handle_deadline(&mut self, _: Instant) {}
        fn poll_packet(&mut self, _: Instant) -> Option<(Port, Vec<u8>)> {
            None
        }
        fn next_deadline(&self) -> Option<Instant> {
            Some(Instant::ZERO)
        }
    }

    #[test]
    fn catch_up_handles_missed_deadlines_at_their_times() {
        let mut beacon = beacon(&[1, 2, 2, 9], 1);
        let mut left = Vec::new();
        catch_up(&mut beacon, at(5), |now, port, _| left.push((now, port)));
        assert_eq!(left, [(at(1), A), (at(2), A), (at(2), A)]);
        assert_eq!(beacon.next_deadline(), Some(at(9)));
    }

    #[test]
    fn advance_stops_after_instant_of_first_departure() {
        let mut machine = beacon(&[1, 2, 3, 3, 4, 5, 6, 6, 9], 3);
        let mut left = Vec::new();
        let mut step = |until, max_deadlines| {
            let last = advance(&mut machine, until, max_deadlines, |now, _, _| left.push(now));
            (last, std::mem::take(&mut left))
        };
        assert_eq!(step(at(8), 100), (Some(at(3)), vec![at(3)]), "both deadlines at 3 ms are handled");
        assert_eq!(step(at(4), 100), (Some(at(4)), vec![]));
        assert_eq!(step(at(4), 100), (None, vec![]));
        assert_eq!(step(at(8), 1), (Some(at(5)), vec![at(5)]), "one deadline, the only one at its time");
        assert_eq!(step(at(8), 1), (Some(at(6)), vec![]), "two deadlines, because they have the same time");
        assert_eq!(step(at(9), 1), (Some(at(9)), vec![at(9)]));
    }

    #[test]
    #[should_panic(expected = "over and over")]
    fn livelock_causes_panic() {
        catch_up(&mut Stuck, Instant::ZERO, |_, _, _| {});
    }

    #[test]
    fn crossover_keeps_order_of_each_direction() {
        let mut crossover = Crossover::default();
        for (port, byte) in [(A, 1), (B, 2), (A, 3)] {
            crossover.handle_packet(Instant::ZERO, port, vec![byte]);
        }
        let mut left = Vec::new();
        drain(&mut crossover, Instant::ZERO, |_, port, packet| left.push((port, packet)));
        assert_eq!(left, [(B, vec![1]), (A, vec![2]), (B, vec![3])]);
    }
}
