//! What every protocol machine looks like from outside, and how a driver must treat it.
//!
//! A machine is sans-I/O: it is handed the time and the packets and hands back packets and its next deadline.
//! The same machine runs in real time between TUN devices (`driver`) and in virtual time.

use airwire::time::Instant;

/// One of a machine's places where packets go in and out, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub usize);

/// A machine between ports.
///
/// # Order of calls
///
/// 1. Before a packet is handed in, every deadline up to that instant is handed in: [`catch_up`].
/// 2. After every `handle_*`, `poll_packet` is called until it returns `None`: [`drain`]. Only then is
///    `next_deadline` meaningful.
/// 3. `now` never goes back. It may stay: things that happen at one instant happen in the order of the calls.
/// 4. A driver that wakes up late hands in the deadline that it missed, not the clock. So lateness is seen once,
///    at the exit, and does not add up from stage to stage.
pub trait Machine {
    /// A whole IP packet came in by `port`.
    fn handle_packet(&mut self, now: Instant, port: Port, packet: Vec<u8>);

    /// Time passed: `now` has reached `next_deadline()`.
    fn handle_deadline(&mut self, now: Instant);

    /// The next packet that leaves at this instant, and by which port.
    fn poll_packet(&mut self, now: Instant) -> Option<(Port, Vec<u8>)>;

    /// When `handle_deadline` is wanted next. `None`: not before another packet comes in.
    fn next_deadline(&self) -> Option<Instant>;
}

/// Hands out everything that leaves at `now`.
pub fn drain(machine: &mut impl Machine, now: Instant, mut deliver: impl FnMut(Instant, Port, Vec<u8>)) {
    while let Some((port, packet)) = machine.poll_packet(now) {
        deliver(now, port, packet);
    }
}

/// Hands in every deadline up to and including `now`, each at its own time, and hands out what leaves.
///
/// # Panics
///
/// When the machine asks for the same deadline again and again: that is a livelock, and a bug in the machine.
pub fn catch_up(machine: &mut impl Machine, now: Instant, mut deliver: impl FnMut(Instant, Port, Vec<u8>)) {
    while advance(machine, now, u32::MAX, &mut deliver).is_some() {}
}

/// Hands in deadlines up to and including `until`, but none after the instant at which something leaves, and `most` of
/// them or a few more: the rest of an instant is never put off. Returns when the last one was. `None`: there was none.
///
/// # Panics
///
/// As [`catch_up`].
pub fn advance(
    machine: &mut impl Machine,
    until: Instant,
    most: u32,
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
        if handled == most {
            until = deadline;
        }
    }
    last
}

/// The simplest machine: what comes in by one port leaves at once by the other.
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
    use airwire::time::Duration;

    use super::*;

    const A: Port = Port(0);
    const B: Port = Port(1);

    /// Sends one packet by port 0 at each of its times.
    struct Beacon(Vec<Instant>, Option<Vec<u8>>);

    impl Machine for Beacon {
        fn handle_packet(&mut self, _: Instant, _: Port, _: Vec<u8>) {}
        fn handle_deadline(&mut self, now: Instant) {
            assert_eq!(now, self.0.remove(0));
            self.1 = Some(vec![0]);
        }
        fn poll_packet(&mut self, _: Instant) -> Option<(Port, Vec<u8>)> {
            self.1.take().map(|packet| (A, packet))
        }
        fn next_deadline(&self) -> Option<Instant> {
            self.0.first().copied()
        }
    }

    /// Never satisfied.
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
    fn a_late_driver_hands_in_the_deadlines_that_it_missed() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut beacon = Beacon(vec![at(1), at(2), at(2), at(9)], None);
        let mut left = Vec::new();
        catch_up(&mut beacon, at(5), |now, port, _| left.push((now, port)));
        assert_eq!(left, [(at(1), A), (at(2), A), (at(2), A)]);
        assert_eq!(beacon.next_deadline(), Some(at(9)));
    }

    #[test]
    fn an_advance_ends_with_the_instant_at_which_something_leaves() {
        /// Sends at every third of its times.
        struct Third(Vec<Instant>, u32, bool);
        impl Machine for Third {
            fn handle_packet(&mut self, _: Instant, _: Port, _: Vec<u8>) {}
            fn handle_deadline(&mut self, now: Instant) {
                assert_eq!(now, self.0.remove(0));
                self.1 += 1;
                self.2 = self.1.is_multiple_of(3);
            }
            fn poll_packet(&mut self, _: Instant) -> Option<(Port, Vec<u8>)> {
                std::mem::take(&mut self.2).then(|| (A, vec![0]))
            }
            fn next_deadline(&self) -> Option<Instant> {
                self.0.first().copied()
            }
        }
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut machine = Third([1, 2, 3, 3, 4, 5, 6, 6, 9].map(at).to_vec(), 0, false);
        let mut left = Vec::new();
        let mut step = |until, most| {
            let last = advance(&mut machine, until, most, |now, _, _| left.push(now));
            (last, std::mem::take(&mut left))
        };
        assert_eq!(step(at(8), 100), (Some(at(3)), vec![at(3)]), "both deadlines at 3 ms are behind it");
        assert_eq!(step(at(4), 100), (Some(at(4)), vec![]));
        assert_eq!(step(at(4), 100), (None, vec![]));
        assert_eq!(step(at(8), 1), (Some(at(5)), vec![at(5)]), "one, and it is the only one of its instant");
        assert_eq!(step(at(8), 1), (Some(at(6)), vec![]), "two, for they are of one instant");
        assert_eq!(step(at(9), 1), (Some(at(9)), vec![at(9)]));
    }

    #[test]
    #[should_panic(expected = "over and over")]
    fn a_livelock_is_found() {
        catch_up(&mut Stuck, Instant::ZERO, |_, _, _| {});
    }

    #[test]
    fn a_crossover_keeps_the_order_of_each_direction() {
        let mut crossover = Crossover::default();
        for (port, byte) in [(A, 1), (B, 2), (A, 3)] {
            crossover.handle_packet(Instant::ZERO, port, vec![byte]);
        }
        let mut left = Vec::new();
        drain(&mut crossover, Instant::ZERO, |_, port, packet| left.push((port, packet)));
        assert_eq!(left, [(B, vec![1]), (A, vec![2]), (B, vec![3])]);
    }
}
